"""Walk folders: which files in them are stored, and how many names are left out, by reason.

Left out are hidden names, what `.gitignore` files say, links and special files. `--include` patterns win over
all of that but links and special files, `--exclude` patterns leave out more. Their form is that of
`.gitignore`, relative to the folder that was named. As git does, a name is judged by the deepest `.gitignore`
that has an opinion, and what is in a folder that was left out is not looked at; only with `--include` the
walk goes on there, for names that match.

In a working tree of git the files above the folder count too, and `.git/info/exclude`; they do not if they
would leave out the folder itself, since a path that is named is taken.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple

from fdstore.errors import InvalidArgument, PathRefused, TargetMissing, quoted

IGNORE_FILE = ".gitignore"
MAX_IGNORE_BYTES = 1 << 20
"""The most bytes of a `.gitignore` that are read."""

HIDDEN, IGNORED, EXCLUDED, LINK, SPECIAL = "hidden", "by .gitignore", "by --exclude", "link", "special file"
NOUNS = (LINK, SPECIAL)


class Found(NamedTuple):
    """A file in a folder: its path, and that below the folder."""

    path: str
    below: str


class LeftOut(NamedTuple):
    """Names in a folder that are left out, and the reason, one of those above. A whole folder counts as one
    name."""

    reason: str
    names: int = 1


class Unlisted(NamedTuple):
    """A folder that cannot be listed."""

    below: str
    problem: str


class Patterns:
    """Patterns in the form of `.gitignore`, of which the last that matches decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        # the patterns alone are used: a match of a folder above is none here, see `opinion`
        self._patterns = [pattern for line in lines for pattern in _compiled(line)]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def opinion(self, below: str, *, is_folder: bool) -> bool | None:
        """Return whether this very path matches, not only a folder that it is in; False for a pattern with
        `!`, None if nothing matches."""
        path = _text(below) + ("/" if is_folder else "")
        for pattern in reversed(self._patterns):
            match = pattern.regex.match(path)
            if match is None:
                continue
            end = match.end(FOLDER) if FOLDER in pattern.regex.groupindex else -1
            is_above = end != -1 and end < len(path)
            is_only_begun = end == -1 and is_folder and match.end() == len(path)  # `a/**` is not `a/` itself
            if not (is_above or is_only_begun):
                return bool(pattern.include)
        return None

    def takes(self, below: str) -> bool:
        """Return whether a file matches, by its own path or that of a folder that it is in."""
        names = below.split("/")
        above = ("/".join(names[:count]) for count in range(1, len(names)))
        return bool(self.opinion(below, is_folder=False)) or any(
            self.opinion(each, is_folder=True) for each in above
        )


def pattern_of(below: str) -> str:
    """Return the pattern of this path alone, in the form of `.gitignore`.

    >>> pattern_of("logs/app.log.gz"), pattern_of("a*b ")
    ('/logs/app.log.gz', '/a\\\\*b\\\\ ')
    """
    return "/" + re.sub(r"[][*?\\]| \Z", r"\\\g<0>", below)


FOLDER = "ps_d"
"""The group of a pattern of `pathspec` that matches the slash behind a folder."""


def _compiled(line: str) -> list[Any]:
    """Return the pattern of a line, none for a comment. Raises `InvalidArgument`."""
    from pathspec import GitIgnoreSpec  # most commands need no pattern

    try:
        found = GitIgnoreSpec.from_lines([_text(line)], backend="simple").patterns
    except ValueError as error:
        raise InvalidArgument("pattern", f"{quoted(line)} is not a pattern of .gitignore") from error
    return [pattern for pattern in found if pattern.include is not None and pattern.regex is not None]


def _text(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class _LeftOutFolder:
    """A folder that is left out, in which `--include` patterns may take files: what is left out is then not
    the folder but the rest of it."""

    def __init__(self, reason: str, parent: _LeftOutFolder | None) -> None:
        self.reason, self.parent = reason, parent
        self.rest: Counter[str] = Counter()
        self.has_taken = False

    def end(self) -> Iterator[LeftOut]:
        """Yield what is left out, once all in it was seen; tell it to the left out folder above instead."""
        left = self.rest if self.has_taken else Counter({self.reason: 1})
        if self.parent is None:
            yield from (LeftOut(reason, count) for reason, count in left.items())
        else:
            self.parent.rest += left
            self.parent.has_taken |= self.has_taken


class _Rules(NamedTuple):
    """The patterns of one `.gitignore`, and the folder that they are relative to, below the folder that is
    walked; of one above it, the path of the walked folder from there."""

    patterns: Patterns
    base: str
    above: str = ""

    def opinion(self, below: str, *, is_folder: bool) -> bool | None:
        """Return the opinion on a path below the folder that is walked."""
        inner = below[len(self.base) + 1 :] if self.base else below
        return self.patterns.opinion(f"{self.above}/{inner}" if self.above else inner, is_folder=is_folder)


def walk(top: str, include: Patterns, exclude: Patterns) -> Iterator[Found | LeftOut | Unlisted]:
    """Yield what is in a folder and the folders in it, in the order of their names. Nothing is followed: no
    links. What is left out of a folder with a file that is taken nevertheless follows what is in it."""
    waiting: list[_Waiting | _LeftOutFolder] = [_Waiting(top, "", _rules_above(top), None)]
    while waiting:
        following = waiting.pop()
        if isinstance(following, _LeftOutFolder):
            yield from following.end()
            continue
        folder, below, rules, left_out = following
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            yield Unlisted(below or ".", (error.strerror or str(error)).lower())
            continue
        if any(entry.name == IGNORE_FILE for entry in entries) and (
            own := _read_patterns(os.path.join(folder, IGNORE_FILE))
        ):
            rules = (*rules, _Rules(own, below))
        folders = []
        for entry in entries:
            inner = f"{below}/{entry.name}" if below else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.is_file(follow_symlinks=False):
                reason = LINK if entry.is_symlink() else SPECIAL
            elif left_out is not None:
                reason = left_out.reason
            else:
                reason = _reason(entry.name, inner, rules, exclude, is_folder=is_folder)
            if is_folder and (not reason or include):
                itself = _LeftOutFolder(reason, left_out) if reason else None
                folders.append((_Waiting(entry.path, inner, rules, itself), itself))
            elif not reason or (reason not in NOUNS and include and include.takes(inner)):
                if left_out is not None:
                    left_out.has_taken = True
                yield Found(entry.path, inner)
            elif left_out is not None:
                left_out.rest[reason] += 1
            else:
                yield LeftOut(reason)
        for each, itself in reversed(folders):
            waiting += [each] if itself is None else [itself, each]


class _Waiting(NamedTuple):
    """A folder to look into, the rules that hold in it, and itself if it is left out."""

    path: str
    below: str
    rules: tuple[_Rules, ...]
    left_out: _LeftOutFolder | None


def _reason(name: str, below: str, rules: Sequence[_Rules], exclude: Patterns, *, is_folder: bool) -> str:
    if name.startswith("."):
        return HIDDEN
    if exclude.opinion(below, is_folder=is_folder):
        return EXCLUDED
    opinions = (each.opinion(below, is_folder=is_folder) for each in reversed(rules))
    return IGNORED if next((each for each in opinions if each is not None), False) else ""


def _read_patterns(path: str) -> Patterns | None:
    """Return the patterns of a file; None if there are none that can be read. As git does, leave out lines
    that are no patterns."""
    kept = []
    with suppress(OSError, PathRefused, TargetMissing), open_inside(path) as file:
        for line in file.read(MAX_IGNORE_BYTES).decode("utf-8", "surrogateescape").split("\n"):
            with suppress(InvalidArgument):
                Patterns([line])
                kept.append(line.removesuffix("\r"))
    return Patterns(kept) or None


def _rules_above(top: str) -> tuple[_Rules, ...]:
    """Return the rules of the working tree of git that a folder is in, from its root down to the folder."""
    real = os.path.realpath(top)
    above = real
    names: list[str] = []
    while not os.path.exists(os.path.join(above, ".git")):
        above, name = os.path.split(above)
        if not name:
            return ()
        names.insert(0, name)
    rules = []
    files = [os.path.join(above, ".git", "info", "exclude")]
    files += [os.path.join(above, *names[:depth], IGNORE_FILE) for depth in range(len(names))]
    for number, file in enumerate(files):
        if patterns := _read_patterns(file):
            rules.append(_Rules(patterns, "", "/".join(names[max(0, number - 1) :])))
    for depth in range(len(names)):  # is the folder itself left out?
        for each in reversed(rules):
            taken = len(names) - len(each.above.split("/")) if each.above else len(names)
            if taken > depth:
                continue
            opinion = each.patterns.opinion("/".join(names[taken : depth + 1]), is_folder=True)
            if opinion is not None:
                if opinion:
                    return ()
                break
    return tuple(rules)


def open_inside(path: str) -> BinaryIO:
    """Open a regular file in a folder that is walked; neither a link nor anything that could block.

    Raises `PathRefused`, `TargetMissing`.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise TargetMissing(path, "it was removed meanwhile") from error
    except OSError as error:
        raise PathRefused(path, (error.strerror or str(error)).lower()) from error
    file = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        file.close()
        raise PathRefused(path, "it is not a regular file")
    return file
