"""The seccomp filter of commands: one classic BPF program for both sandbox engines.

    other architecture -> killed
    number in a table  -> refused, always or depending on one argument
    anything else      -> allowed

It refuses calls that no text filter needs and that namespaces or Landlock leave open: the kernel's
keyrings, io_uring, bpf, perf, userfaultfd, the kernel's log, new namespaces, socket families that a network
namespace does not isolate (vsock), and changes to other processes of the same user (prlimit and the like).

The launcher imports this module for every command, so it uses the standard library only.
"""

from __future__ import annotations

import errno
import os
import struct

EPERM, EACCES, ENOSYS = errno.EPERM, errno.EACCES, errno.ENOSYS

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* by the machine name of uname."""

_X32 = 0x40000000
"""The bit that marks x32 system call numbers, aliases of the same calls."""

_ALWAYS = {
    # name: (x86_64, aarch64); from 424 on, numbers are the same on all architectures
    "ptrace": (101, 117),
    "syslog": (103, 116),
    "personality": (135, 92),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "swapon": (167, 224),
    "reboot": (169, 142),
    "acct": (163, 89),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "unshare": (272, 97),
    "setns": (308, 268),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
}

_OF_OTHERS = {
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
}
"""Refused unless `supervised`: a supervisor runs under the same filter and needs them."""

_ATTRIBUTES = {
    # only x86_64 has the variants without a directory argument
    "chmod": (90, None),
    "fchmod": (91, 52),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "utime": (132, None),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "utimes": (235, None),
    "fchownat": (260, 54),
    "futimesat": (261, None),
    "fchmodat": (268, 53),
    "utimensat": (280, 88),
    "fchmodat2": (452, 452),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""Landlock protects contents of files but not their attributes; a read-only mount protects both."""

_OWN_ONLY: dict[str, tuple[int, int, dict[int, int]]] = {
    # name: (x86_64, aarch64, what arguments must be: this process)
    "prlimit64": (302, 261, {0: 0}),
    "sched_setparam": (142, 118, {0: 0}),
    "sched_setscheduler": (144, 119, {0: 0}),
    "sched_setaffinity": (203, 122, {0: 0}),
    "sched_setattr": (314, 274, {0: 0}),
    "setpriority": (141, 140, {0: 0, 1: 0}),  # PRIO_PROCESS: 0 is also this group, and this user
    "ioprio_set": (251, 30, {0: 1, 1: 0}),  # IOPRIO_WHO_PROCESS, likewise
}

_CLONE, _CLONE3, _SOCKET, _SOCKETPAIR = (56, 220), (435, 435), (41, 198), (53, 199)
_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""

FAMILIES = (1, 2, 10, 16)
"""Socket families that a network namespace isolates: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""

_SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPE = 1, 5, 0xF

_LOAD, _EQUALS, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def known(machine: str | None = None) -> bool:
    """Return whether there is a filter for this architecture."""
    return (machine or os.uname().machine) in _ARCHITECTURES


def make(*, sockets: bool, attributes: bool, supervised: bool, machine: str | None = None) -> bytes | None:
    """Return the BPF program for seccomp; None for an architecture that is not in the tables.

    `sockets` allows the socket families `FAMILIES`; without it only connected socket pairs are allowed.
    `attributes` allows chmod, chown, utime and extended attributes. `supervised` is for a filter that also
    applies to a supervisor.

    >>> len(make(sockets=True, attributes=True, supervised=False, machine="x86_64")) % 8
    0
    >>> make(sockets=True, attributes=True, supervised=False, machine="sparc64") is None
    True
    """
    machine = machine or os.uname().machine
    if not known(machine):
        return None
    column = list(_ARCHITECTURES).index(machine)
    code = [_op(_LOAD, _ARCHITECTURE), _op(_EQUALS, _ARCHITECTURES[machine], 1, 0), _op(_RETURN, _KILL)]
    code.append(_op(_LOAD, _NUMBER))
    if machine == "x86_64":
        code += [_op(_AT_LEAST, _X32, 0, 1), _op(_RETURN, _ERRNO | EPERM)]

    refused = {**_ALWAYS, **({} if supervised else _OF_OTHERS), **({} if attributes else _ATTRIBUTES)}
    for numbers in refused.values():
        number = numbers[column]
        if number is not None:
            code += [_op(_EQUALS, number, 0, 1), _op(_RETURN, _ERRNO | EPERM)]
    # clone3 passes its flags in memory, out of a filter's reach; on ENOSYS C libraries fall back to clone
    code += [_op(_EQUALS, _CLONE3[column], 0, 1), _op(_RETURN, _ERRNO | ENOSYS)]
    spaces = [*_argument(0), _op(_ANY_BIT, _NAMESPACES, 0, 1), _op(_RETURN, _ERRNO | EPERM)]
    code += _when(_CLONE[column], spaces)
    for *both, own in _OWN_ONLY.values():
        block: list[bytes] = []
        for number, value in own.items():
            block += [*_argument(number), _op(_EQUALS, value, 1, 0), _op(_RETURN, _ERRNO | EPERM)]
        code += _when(both[column], block)
    code += _when(_SOCKET[column], _one_of(0, 0xFFFFFFFF, FAMILIES if sockets else ()))
    # a datagram socket, even one of a pair, can send to any address
    pairs = [*_one_of(1, _SOCK_TYPE, (_SOCK_STREAM, _SOCK_SEQPACKET))]
    code += [] if sockets else _when(_SOCKETPAIR[column], pairs)
    code.append(_op(_RETURN, _ALLOW))
    return b"".join(code)


def _op(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("HBBI", code, true, false, value)


def _argument(number: int) -> list[bytes]:
    """Load the lower half of an argument: the kernel too reads the compared arguments as int."""
    return [_op(_LOAD, _ARGUMENTS + 8 * number)]


def _when(number: int, block: list[bytes]) -> list[bytes]:
    """Run `block` if the call has this number. `block` may change the loaded word."""
    return [_op(_EQUALS, number, 0, len(block) + 1), *block, _op(_LOAD, _NUMBER)]


def _one_of(argument: int, mask: int, values: tuple[int, ...]) -> list[bytes]:
    """Refuse the call unless the argument is one of `values`."""
    tests = [_op(_EQUALS, value, len(values) - index, 0) for index, value in enumerate(values)]
    return [*_argument(argument), _op(_AND, mask), *tests, _op(_RETURN, _ERRNO | EACCES)]
