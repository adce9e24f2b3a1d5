"""A change of one configuration file: shown as a diff, written in one step, recorded, and undone exactly.

The record has the file as it was and as it was left. While the file is as it was left, undoing restores it
byte for byte; after other changes only the hook is taken out.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec

from fdstore.errors import InvalidArgument, PathRefused
from fdstore.files.target import Target
from fdstore.model.msgspec_types import prepare


class ConfigChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a file: its text before and after, None for no file."""

    path: Path
    before: str | None
    after: str | None

    def diff(self) -> str:
        """Return the change as a unified diff; "" if nothing changes."""
        old, new = ((each or "").splitlines(keepends=True) for each in (self.before, self.after))
        lines = difflib.unified_diff(old, new, str(self.path), str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end\n" for line in lines)


class InstallRecord(msgspec.Struct, frozen=True):
    """A change of a file: the file before the first installation, and after the last one."""

    before: str | None
    after: str


prepare(InstallRecord)


def installed(path: Path, add: Callable[[str], str]) -> ConfigChange:
    """Return the change that adds a hook. Raises `InvalidArgument`, `PathRefused`."""
    before = read_text(path)
    return ConfigChange(path=path, before=before, after=add(before or ""))


def undone(path: Path, records: Path, remove: Callable[[str], str]) -> ConfigChange:
    """Return the change that takes the hook out again. Raises `InvalidArgument`, `PathRefused`."""
    now, record = read_text(path), _record(path, records)
    if record is not None and now == record.after:
        return ConfigChange(path=path, before=now, after=record.before)
    return ConfigChange(path=path, before=now, after=None if now is None else remove(now))


def write(change: ConfigChange, records: Path, *, undo: bool) -> None:
    """Write a change, and its record first. Raises `WriteFailed`, `PathRefused`, and `InvalidArgument` if
    the file was changed since."""
    if read_text(change.path) != change.before:
        raise InvalidArgument(str(change.path), "it was changed meanwhile; try again")
    kept = _record_path(change.path, records)
    if undo:
        _put(change)
        kept.unlink(missing_ok=True)
        return
    record = _record(change.path, records)
    original = record.before if record is not None and record.after == change.before else change.before
    records.mkdir(parents=True, exist_ok=True)
    kept.touch(mode=0o600)  # a configuration may have secrets
    with Target(kept) as target:
        target.write(msgspec.json.encode(InstallRecord(original, change.after or "")))
        target.commit()
    _put(change)


def _put(change: ConfigChange) -> None:
    if change.after is None:
        change.path.unlink(missing_ok=True)
        return
    change.path.parent.mkdir(parents=True, exist_ok=True)
    with Target(change.path) as target:
        target.write(change.after.encode("utf-8"))
        target.commit()


def read_text(path: Path) -> str | None:
    """Return the text of a file, None if there is none. Raises `PathRefused`."""
    try:
        if path.exists() and not path.is_file():
            raise PathRefused(str(path), "it is not a file")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise PathRefused(str(path), str(error)) from error


def _record(path: Path, records: Path) -> InstallRecord | None:
    try:
        return msgspec.json.decode(_record_path(path, records).read_bytes(), type=InstallRecord)
    except (OSError, msgspec.DecodeError):
        return None


def _record_path(path: Path, records: Path) -> Path:
    return records / f"{sha256(os.fsencode(path.absolute())).hexdigest()[:16]}.json"
