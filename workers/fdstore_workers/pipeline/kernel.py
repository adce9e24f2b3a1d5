"""System calls that Python has no function for, as `OSError` or nothing. Standard library alone."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_SLAVE, MS_PRIVATE = 4096, 16384, 1 << 19, 1 << 18
MNT_DETACH = 2

_PDEATHSIG, _DUMPABLE, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS, _CAP_AMBIENT = 1, 4, 24, 36, 38, 47
_AMBIENT_CLEAR_ALL = 4
_JOIN_SESSION_KEYRING = 1
_SECCOMP_SET_MODE_FILTER = 1
_CAP_VERSION = 0x20080522

_X86 = os.uname().machine == "x86_64"
_NR_KEYCTL, _NR_SECCOMP, _NR_PIVOT_ROOT, _NR_CAPSET, _NR_MOUNT_SETATTR = (
    (250, 317, 155, 126, 442) if _X86 else (219, 277, 41, 91, 442)
)
_AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY = -100, 0x8000, 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def _prctl(option: int, value: int, what: str) -> None:
    word = ctypes.c_ulong
    _checked(_libc.prctl(option, word(value), word(0), word(0), word(0)), what)


def restore_signals() -> None:
    """Take back what Python ignores for itself and every program would inherit: PIPE and XFSZ."""
    for number in (13, 25):
        _libc.signal(number, None)


def unshare(flags: int) -> None:
    """Give this process namespaces of its own; of pids, to its children."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount, bind, move or change, by `flags`."""
    words = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    arguments = (words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])
    _checked(_libc.mount(*arguments), f"mount {target}")


def make_read_only(target: str) -> None:
    """Make a mount and all below it read-only, whatever else they are (Linux 5.12)."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY, 0, 0, 0)
    path, size = os.fsencode(target), ctypes.c_size_t(ctypes.sizeof(attributes))
    call = (_NR_MOUNT_SETATTR, _AT_FDCWD, path, _AT_RECURSIVE, ctypes.byref(attributes), size)
    _checked(_libc.syscall(*call), f"mount_setattr {target}")


def change_root(root: str) -> None:
    """Make the mount `root` the root and forget the old one."""
    os.chdir(root)
    _checked(_libc.syscall(_NR_PIVOT_ROOT, b".", b"."), "pivot_root")
    _checked(_libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")


def set_hostname(name: str) -> None:
    """Name this UTS namespace."""
    encoded = name.encode()
    _checked(_libc.sethostname(encoded, ctypes.c_size_t(len(encoded))), "sethostname")


def join_new_session_keyring() -> None:
    """Leave the session keyring, with the keys of whoever started the worker, for an empty one."""
    _checked(_libc.syscall(_NR_KEYCTL, _JOIN_SESSION_KEYRING, None), "keyctl")


def die_with_parent(signal_number: int) -> None:
    """Ask for a signal when the thread that started this process ends. A change of user forgets it."""
    _prctl(_PDEATHSIG, signal_number, "PR_SET_PDEATHSIG")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose parent ends."""
    _prctl(_SUBREAPER, 1, "PR_SET_CHILD_SUBREAPER")


def be_dumpable() -> None:
    """Own /proc/self again after a change of user."""
    _prctl(_DUMPABLE, 1, "PR_SET_DUMPABLE")


def drop_capabilities() -> None:
    """Give up every capability, and with no new privileges the ways to get one."""
    _prctl(_NO_NEW_PRIVS, 1, "PR_SET_NO_NEW_PRIVS")
    word = ctypes.c_ulong
    _libc.prctl(_CAP_AMBIENT, word(_AMBIENT_CLEAR_ALL), word(0), word(0), word(0))
    for capability in range(64):
        if _libc.prctl(_CAPBSET_DROP, word(capability), word(0), word(0), word(0)) < 0:
            break  # the last that this kernel knows, or no right to: then exec gives none
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()
    _checked(_libc.syscall(_NR_CAPSET, ctypes.byref(header), ctypes.byref(sets)), "capset")


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def filter_system_calls(code: bytes) -> None:
    """Install a seccomp program for this process and all it starts. Needs `drop_capabilities` before."""
    program = _Program(len(code) // 8, code)
    call = (_NR_SECCOMP, _SECCOMP_SET_MODE_FILTER, 0, ctypes.byref(program))
    _checked(_libc.syscall(*call), "seccomp")
