"""Linux system calls that the `os` module lacks. They raise `OSError`. Standard library only."""

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


def _check(result: int, operation: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), operation)
    return result


def _prctl(option: int, value: int, name: str) -> None:
    word = ctypes.c_ulong
    _check(_libc.prctl(option, word(value), word(0), word(0), word(0)), name)


def restore_signals() -> None:
    """Reset SIGPIPE and SIGXFSZ, which Python ignores and every program would inherit as ignored."""
    for number in (13, 25):
        _libc.signal(number, None)


def unshare(flags: int) -> None:
    """Move this process into new namespaces (a new PID namespace applies to its children)."""
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Call mount(2)."""
    words = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    arguments = (words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])
    _check(_libc.mount(*arguments), f"mount {target}")


def make_read_only(target: str) -> None:
    """Make a mount and all mounts below it read-only, and keep their other attributes (Linux 5.12)."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY, 0, 0, 0)
    path, size = os.fsencode(target), ctypes.c_size_t(ctypes.sizeof(attributes))
    call = (_NR_MOUNT_SETATTR, _AT_FDCWD, path, _AT_RECURSIVE, ctypes.byref(attributes), size)
    _check(_libc.syscall(*call), f"mount_setattr {target}")


def change_root(root: str) -> None:
    """Make the mount `root` the root directory and detach the old root."""
    os.chdir(root)
    _check(_libc.syscall(_NR_PIVOT_ROOT, b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")


def set_hostname(name: str) -> None:
    """Set the host name of this UTS namespace."""
    encoded = name.encode()
    _check(_libc.sethostname(encoded, ctypes.c_size_t(len(encoded))), "sethostname")


def join_new_session_keyring() -> None:
    """Switch to an empty session keyring; the inherited one holds keys of the worker's user."""
    _check(_libc.syscall(_NR_KEYCTL, _JOIN_SESSION_KEYRING, None), "keyctl")


def die_with_parent(signal_number: int) -> None:
    """Request a signal for the end of the thread that started this process. A change of user resets it."""
    _prctl(_PDEATHSIG, signal_number, "PR_SET_PDEATHSIG")


def adopt_orphans() -> None:
    """Adopt every descendant whose parent ends (child subreaper)."""
    _prctl(_SUBREAPER, 1, "PR_SET_CHILD_SUBREAPER")


def be_dumpable() -> None:
    """Make /proc/self accessible again after a change of user."""
    _prctl(_DUMPABLE, 1, "PR_SET_DUMPABLE")


def drop_capabilities() -> None:
    """Drop every capability, and set no_new_privs, so that exec cannot regain any."""
    _prctl(_NO_NEW_PRIVS, 1, "PR_SET_NO_NEW_PRIVS")
    word = ctypes.c_ulong
    _libc.prctl(_CAP_AMBIENT, word(_AMBIENT_CLEAR_ALL), word(0), word(0), word(0))
    for capability in range(64):
        if _libc.prctl(_CAPBSET_DROP, word(capability), word(0), word(0), word(0)) < 0:
            break  # past the kernel's last capability, or not permitted: then exec grants none anyway
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()
    _check(_libc.syscall(_NR_CAPSET, ctypes.byref(header), ctypes.byref(sets)), "capset")


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def filter_system_calls(code: bytes) -> None:
    """Install a seccomp filter for this process and its descendants. Call `drop_capabilities` before."""
    program = _Program(len(code) // 8, code)
    call = (_NR_SECCOMP, _SECCOMP_SET_MODE_FILTER, 0, ctypes.byref(program))
    _check(_libc.syscall(*call), "seccomp")
