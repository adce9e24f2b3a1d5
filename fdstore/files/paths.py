"""Where a path leads: from text that anybody may have written to a directory handle and a bare name.

A path is text that can mean another file a moment later. So it is used once, here, and whoever
works on the file does it through the handle, which stays on the directory it was opened for.

With a root the path comes from a model. It is walked name by name from the root's handle, each
directory opened with O_NOFOLLOW relative to the one before; no comparing of strings could tell
where a link leads. Hidden names (.git, .env, .ssh) are refused: what stands there is configuration, which
other programs execute, or secrets. Without a root it comes from the programmer, who may name any file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from fdstore.errors import PathRefused, TargetMissing, quoted

NAME_BYTES = 255
"""The longest name of a file on the file systems in use."""

# O_PATH needs no read permission on a directory, as passing through one needs none either.
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
    """A directory that a person named: paths that a model names lead to files below it.

    directory  its path; it may itself be reached through links
    below      names of directories under it that lead to where paths begin: walked like those of a path,
               since someone else than the owner of `directory` named them
    make       make `directory` and those `below` when they do not exist
    kind       what messages call it
    """

    directory: str
    below: tuple[str, ...] = ()
    make: bool = False
    kind: str = "export root"


def hidden_name(names: Iterable[str]) -> str | None:
    """The first of these components of a path that is a hidden file or directory."""
    return next((name for name in names if name.startswith(".") and name not in (".", "..")), None)


def locate(path: str, root: str | Root | None = None) -> tuple[int, str]:
    """A handle on the directory that `path` names a file in, to be closed by the caller, and the bare name.

    The file itself need not exist. Without a root a link at the end of the path is resolved; with one
    it is left for `require_regular` to refuse. Raises `PathRefused`, `TargetMissing` (there is no such
    directory) and the system's own errors.
    """
    names = _names(path)
    try:
        if root is not None:
            root = Root(root) if isinstance(root, str) else root
            return _walked(path, root, names), names[-1]
        directory, name = os.path.split(_link_target(path) if os.path.islink(path) else path)
        return os.open(directory or ".", _DIRECTORY), name
    except FileNotFoundError as error:
        raise TargetMissing(path, "its directory does not exist; use one that does") from error


def require_regular(path: str, found: os.stat_result) -> None:
    """Refuse whatever is not a plain file, and say what it is."""
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused(path, f"it is {_kind(found)}, not a regular file")


def _kind(found: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(found.st_mode), "of an unknown kind")


def _names(path: str) -> list[str]:
    """The components of `path`, which must end in the name of a file."""
    try:
        path.encode()  # Python would take some lone surrogates for raw bytes of a name
        os.fsencode(path)
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


def _walked(path: str, root: Root, names: list[str]) -> int:
    """A handle on the directory that holds the last of `names`, reached from `root` without following a
    link."""
    if path.startswith("/"):
        raise PathRefused(path, f"it is absolute; use a path relative to the {root.kind}")
    if path.startswith("~"):
        raise PathRefused(path, f"there is no home directory here; use a path relative to the {root.kind}")
    if ".." in names:
        raise PathRefused(path, f"it holds '..'; use a path below the {root.kind}")
    if hidden := hidden_name(names):
        raise PathRefused(path, f"{quoted(hidden)} is hidden; use names that do not begin with a dot")
    here = _open_root(path, root)
    try:
        for name in names[:-1]:
            if name not in ("", "."):
                here = _enter(path, here, name)
    except BaseException:
        os.close(here)
        raise
    return here


def _open_root(path: str, root: Root) -> int:
    """A handle on the directory that paths below `root` begin at."""
    shown = quoted("/".join((root.directory, *root.below)))
    try:
        if root.make:
            with suppress(FileExistsError):
                os.mkdir(root.directory)
        here = os.open(root.directory, _DIRECTORY)
        try:
            for name in root.below:
                if root.make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=here)
                here = _enter(path, here, name)
        except BaseException:
            os.close(here)
            raise
    except OSError as error:
        why = (error.strerror or "it cannot be opened").lower()
        raise PathRefused(path, f"the {root.kind} {shown} is no usable directory: {why}") from error
    return here


def _enter(path: str, here: int, name: str) -> int:
    """A handle on the directory `name` in `here`, which is closed then. A link is refused."""
    # This look only words the refusal; what holds, whatever happens in between, is O_NOFOLLOW.
    found = os.stat(name, dir_fd=here, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        raise PathRefused(path, f"{quoted(name)} is {_kind(found)}, not a directory")
    inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
    os.close(here)
    return inner


def _link_target(path: str) -> str:
    """The path of the file that the link at `path` leads to."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return os.path.realpath(path)  # a link to nothing yet: what it names will be made
    # Before the path is resolved: a link such as /dev/stdout leads to things that have no path.
    require_regular(path, found)
    return os.path.realpath(path, strict=True)
