"""The filter of system calls for processes that handle what others wrote: the interpreter of programs, and
the readers of documents."""

from __future__ import annotations

import errno
import os
import struct

_REFUSED = {
    # name: (x86_64, aarch64)
    "socket": (41, 198),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "execveat": (322, 281),
    "memfd_create": (319, 279),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "umount2": (166, 39),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "personality": (135, 92),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
"""Calls that the interpreter never makes, and that files and namespaces leave open."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE, _CLONE3, _PRLIMIT = (56, 220), (435, 435), (302, 261)
_NAMESPACES = 0x7E020000
_X32 = 0x40000000

_LOAD, _EQUALS, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _REFUSE, _LACKING = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS


def system_call_filter(machine: str | None = None) -> bytes | None:
    """Return the BPF program for seccomp; None on an architecture that is not in the tables.

    >>> len(system_call_filter("x86_64")) % 8, system_call_filter("sparc64")
    (0, None)
    """
    machine = machine or os.uname().machine
    if machine not in _ARCHITECTURES:
        return None
    column = list(_ARCHITECTURES).index(machine)
    code = [
        (_LOAD, 4, 0, 0),
        (_EQUALS, _ARCHITECTURES[machine], 1, 0),
        (_RETURN, _KILL, 0, 0),
        (_LOAD, 0, 0, 0),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, _X32, 0, 1), (_RETURN, _REFUSE, 0, 0)]
    for numbers in _REFUSED.values():
        code += [(_EQUALS, numbers[column], 0, 1), (_RETURN, _REFUSE, 0, 0)]
    # clone3 passes its flags in memory, out of a filter's reach; C libraries fall back to clone
    code += [(_EQUALS, _CLONE3[column], 0, 1), (_RETURN, _LACKING, 0, 0)]
    first_argument = (_LOAD, 16, 0, 0)
    code += [(_EQUALS, _CLONE[column], 0, 3), first_argument]
    code += [(_ANY_BIT, _NAMESPACES, 0, 1), (_RETURN, _REFUSE, 0, 0), (_LOAD, 0, 0, 0)]
    # limits of other processes
    code += [(_EQUALS, _PRLIMIT[column], 0, 3), first_argument, (_EQUALS, 0, 1, 0), (_RETURN, _REFUSE, 0, 0)]
    code.append((_RETURN, _ALLOW, 0, 0))
    return b"".join(
        struct.pack("HBBI", operation, true, false, value) for operation, value, true, false in code
    )
