"""Resolve a path, possibly a hostile one, to a directory handle and a bare file name.

A path may name another file a moment later. So it is resolved once, here, and all further work uses the
handle, which stays on the directory that was opened.

With a root the path comes from a model. It is walked component by component from the root's handle, each
directory opened with O_NOFOLLOW relative to its parent; a comparison of strings cannot tell where a link
leads. Hidden names (.git, .env, .ssh) are refused: such files hold secrets, or configuration that other
programs execute. Without a root the path comes from the programmer, who may name any file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from fdstore.errors import PathRefused, TargetMissing, quoted

NAME_BYTES = 255
"""The longest file name on common file systems."""

# O_PATH needs no read permission on the directory, like any path lookup.
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFREG: "a file",
}


class Root(msgspec.Struct, frozen=True):
    """A directory configured by a person, which confines the paths that a model names.

    directory  its path, which may contain links
    below      names of subdirectories that lead to the starting point; walked like a model's path, since
               they do not come from the owner of `directory`
    make       create `directory` and the directories `below` if they do not exist
    kind       its name in messages
    """

    directory: str
    below: tuple[str, ...] = ()
    make: bool = False
    kind: str = "export root"


def hidden_name(names: Iterable[str]) -> str | None:
    """Return the first path component that is hidden (starts with a dot), or None."""
    return next((name for name in names if name.startswith(".") and name not in (".", "..")), None)


def locate(path: str, root: str | Root | None = None) -> tuple[int, str]:
    """Return a handle on the directory of `path`, to be closed by the caller, and the bare file name.

    The file itself need not exist. Without a root a link at the end of the path is resolved; with one it is
    left for `require_regular` to refuse. Raises `PathRefused`, `TargetMissing` (the directory does not exist)
    and `OSError`.
    """
    names = _split(path, is_of_model=root is not None)
    try:
        if root is not None:
            root = Root(root) if isinstance(root, str) else root
            return _walk(path, root, names), names[-1]
        directory, name = os.path.split(_resolve_link(path) if os.path.islink(path) else path)
        return os.open(directory or ".", _DIRECTORY), name
    except FileNotFoundError as error:
        raise TargetMissing(path, "its directory does not exist; use one that does") from error


def require_regular(path: str, found: os.stat_result) -> None:
    """Raise `PathRefused`, naming the kind of file, unless it is a regular file."""
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused(path, f"it is {_kind(found)}, not a regular file")


def _kind(found: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(found.st_mode), "of an unknown kind")


def _split(path: str, *, is_of_model: bool) -> list[str]:
    """Return the components of `path`, which must end in a file name. A person's may have bytes that are not
    UTF-8, which Python shows as lone surrogates; those in the path of a model are none. Raises
    `PathRefused`."""
    try:
        os.fsencode(path)
        if is_of_model:
            path.encode()
    except UnicodeEncodeError as error:
        raise PathRefused(path, "it holds a character that no file name can have") from error
    names = path.split("/")
    if path == "":
        raise PathRefused(path, "it is empty")
    if "\0" in path:
        raise PathRefused(path, "it holds a NUL character")
    if names[-1] in ("", ".", ".."):
        raise PathRefused(path, "it names a directory, not a file")
    if any(len(os.fsencode(name)) > NAME_BYTES for name in names):
        raise PathRefused(path, f"a name in it is longer than {NAME_BYTES} bytes")
    return names


def _walk(path: str, root: Root, names: list[str]) -> int:
    """Return a handle on the directory of the last of `names`, walked from `root` without following links."""
    if path.startswith("/"):
        raise PathRefused(path, f"it is absolute; use a path relative to the {root.kind}")
    if path.startswith("~"):
        raise PathRefused(path, f"there is no home directory here; use a path relative to the {root.kind}")
    if ".." in names:
        raise PathRefused(path, f"it holds '..'; use a path below the {root.kind}")
    if hidden := hidden_name(names):
        raise PathRefused(path, f"{quoted(hidden)} is hidden; use names that do not begin with a dot")
    directory_fd = _open_root(path, root)
    try:
        for name in names[:-1]:
            if name not in ("", "."):
                directory_fd = _enter(path, directory_fd, name)
    except BaseException:
        os.close(directory_fd)
        raise
    return directory_fd


def _open_root(path: str, root: Root) -> int:
    """Return a handle on the directory that paths below `root` are relative to."""
    shown = quoted("/".join((root.directory, *root.below)))
    try:
        if root.make:
            with suppress(FileExistsError):
                os.mkdir(root.directory)
        directory_fd = os.open(root.directory, _DIRECTORY)
        try:
            for name in root.below:
                if root.make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=directory_fd)
                directory_fd = _enter(path, directory_fd, name)
        except BaseException:
            os.close(directory_fd)
            raise
    except OSError as error:
        why = (error.strerror or "it cannot be opened").lower()
        raise PathRefused(path, f"the {root.kind} {shown} cannot be used: {why}") from error
    return directory_fd


def _enter(path: str, directory_fd: int, name: str) -> int:
    """Return a handle on the subdirectory `name`, and close `directory_fd`. Raises for a link."""
    # This check only words the refusal; the guarantee, against any race, is O_NOFOLLOW.
    found = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        raise PathRefused(path, f"{quoted(name)} is {_kind(found)}, not a directory")
    inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory_fd)
    os.close(directory_fd)
    return inner


def _resolve_link(path: str) -> str:
    """Return the path that the link at `path` resolves to."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return os.path.realpath(path)  # a dangling link: its target will be created
    # Before resolving: a link such as /dev/stdout may lead to something without a path.
    require_regular(path, found)
    return os.path.realpath(path, strict=True)
