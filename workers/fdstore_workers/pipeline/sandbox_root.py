"""Namespaces, root and scratch directories that the launcher sets up for one command. Standard library only.

bubblewrap   an outer mount namespace with two tmpfs, which bubblewrap binds to /work and /tmp: it cannot
             limit the inodes of a tmpfs itself. Later mounts of the host do not propagate into it.
sandlock     all namespaces, and a root like bubblewrap's

    /            tmpfs, read-only
    /usr, /lib   bound from the host, read-only; private directories below /usr are empty
    /work, /tmp  tmpfs, bounded in bytes and inodes
    /proc, /dev  private
"""

from __future__ import annotations

import os

from fdstore_workers.pipeline import kernel
from fdstore_workers.pipeline.kernel import MS_BIND, MS_NODEV, MS_NOSUID, MS_PRIVATE, MS_REC

NOBODY = 65534
MOUNT_POINT = "/sys"
"""A directory that every Linux has and that holds no program. Only the command sees the mount."""

SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""System directories besides /usr; links into it on current systems."""

FROM_ETC = ("/etc/ld.so.cache", "/etc/alternatives")
DEVICES = ("null", "zero", "full", "random", "urandom")
DEVICE_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}

_ALL = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC
_ALL |= kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP


def become_nobody() -> None:
    """Switch from root to nobody irrevocably; do nothing for other users."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        kernel.be_dumpable()


def enter_with_scratch(size_bytes: int, inodes: int) -> tuple[str, str]:
    """Enter a mount namespace with two bounded directories and return their paths."""
    if os.geteuid() == 0:
        kernel.unshare(kernel.CLONE_NEWNS)
        owner = f",uid={NOBODY},gid={NOBODY}"
    else:
        _enter_user_namespace(kernel.CLONE_NEWNS, os.geteuid(), os.getegid())
        owner = ""
    kernel.mount("none", "/", None, MS_REC | MS_PRIVATE)
    _tmpfs(MOUNT_POINT, "mode=755,size=64k,nr_inodes=8")
    directories = (f"{MOUNT_POINT}/work", f"{MOUNT_POINT}/tmp")
    for directory in directories:
        os.mkdir(directory)
        _tmpfs(directory, _bounds(size_bytes, inodes) + owner)
    return directories


def enter_all(size_bytes: int, inodes: int, private: list[str]) -> None:
    """Enter new namespaces of all kinds and build the root that a child enters with `enter_root`."""
    become_nobody()
    _enter_user_namespace(_ALL, NOBODY, NOBODY)
    kernel.set_hostname("sandbox")
    kernel.mount("none", "/", None, MS_REC | MS_PRIVATE)
    root = MOUNT_POINT
    _tmpfs(root, "mode=755,size=1m,nr_inodes=64")
    for name in ("usr", "etc", "dev", "proc", "work", "tmp"):
        os.mkdir(f"{root}/{name}")
    _bind("/usr", f"{root}/usr")
    for name in SYSTEM:
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{root}/{name}")
        elif os.path.isdir(f"/{name}"):
            os.mkdir(f"{root}/{name}")
            _bind(f"/{name}", f"{root}/{name}")
    for path in FROM_ETC:
        if os.path.isdir(path):
            os.mkdir(root + path)
            _bind(path, root + path)
        elif os.path.exists(path):
            _bind_file(path, root + path)
    for path in private:
        _tmpfs(root + path, "mode=755,size=4k,nr_inodes=1")
    for device in DEVICES:
        _bind_file(f"/dev/{device}", f"{root}/dev/{device}")
    for name, suffix in DEVICE_LINKS.items():
        os.symlink(f"/proc/self/fd{suffix}", f"{root}/dev/{name}")
    kernel.make_read_only(root)
    for name in ("work", "tmp"):
        _tmpfs(f"{root}/{name}", _bounds(size_bytes, inodes))


def enter_root() -> None:
    """Enter the root that `enter_all` built. Call it in pid 1 of the PID namespace, for its /proc."""
    kernel.mount("proc", f"{MOUNT_POINT}/proc", "proc", MS_NOSUID | MS_NODEV | kernel.MS_NOEXEC)
    kernel.change_root(MOUNT_POINT)
    os.chdir("/work")


def _enter_user_namespace(others: int, user: int, group: int) -> None:
    real_user, real_group = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | others)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {real_user} 1")
    _write("/proc/self/gid_map", f"{group} {real_group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _bounds(size_bytes: int, inodes: int) -> str:
    return f"mode=755,size={size_bytes},nr_inodes={inodes}"


def _tmpfs(target: str, data: str) -> None:
    kernel.mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, data)


def _bind(source: str, target: str) -> None:
    kernel.mount(source, target, None, MS_BIND | MS_REC)


def _bind_file(source: str, target: str) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    _bind(source, target)
