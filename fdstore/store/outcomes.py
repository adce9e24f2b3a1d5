"""Decode replies of scripts: `ok` with values, or the type of an error with its facts."""

from __future__ import annotations

from typing import Any

from fdstore.errors import (
    Conflict,
    DamagedRecord,
    FDStoreError,
    Fenced,
    NotFound,
    QuotaExceeded,
    SpawnLimit,
    StoreLostData,
    StoreUnavailable,
    StreamClosed,
    TreeInUse,
    UnsafeStore,
)
from fdstore.store.record_format import decode_count, decoding, format_error
from fdstore.wire.scripts import text


def outcome(reply: list[Any], process: str) -> list[Any]:
    """Return the values of a script's `ok` reply. Raises the typed error of any other reply."""
    kind, *facts = reply
    if kind == b"ok":
        return facts
    with decoding(f"a record of process {process}"):
        error = _error(text(kind), facts, process)
    raise error


def _error(kind: str, facts: list[Any], process: str) -> FDStoreError:
    match kind:
        case "not_found":
            name, *known = map(_text, facts)
            return NotFound(name, tuple(sorted(known, key=by_number)))
        case "removed":
            name, removed_at, *known = map(_text, facts)
            return NotFound(name, tuple(sorted(known, key=by_number)), decode_count(removed_at))
        case "foreign":
            name, *known = map(_text, facts)
            return NotFound(name, tuple(sorted(known, key=by_number)), not_of=process)
        case "lost_data":
            problem = f"the stream has {_text(facts[1])} whole pages, fewer than its metadata says"
            return StoreLostData(_text(facts[0]), problem)
        case "conflict":
            return Conflict(*map(_text, facts))
        case "gone":
            return NotFound(f"process {process}")
        case "fenced":
            return Fenced(process, _text(facts[0]))
        case "spawn_limit":
            return SpawnLimit(_text(facts[0]), decode_count(facts[1]))
        case "quota_exceeded":
            return QuotaExceeded(_text(facts[0]), decode_count(facts[1]))
        case "stream_closed":
            return StreamClosed(_text(facts[0]), _text(facts[1]))
        case "in_use":
            return TreeInUse(process, *map(_text, facts))
        case "format":
            return format_error(process.partition(".")[0], facts[0])
        case "damaged":
            return DamagedRecord(f"tree {process.partition('.')[0]}", _text(facts[0]))
        case "unsafe":
            problem = f"its maxmemory-policy was set to {_text(facts[0])}, which drops content"
            return UnsafeStore("FDSTORE_URL", f"{problem}; `fdstore doctor` says what to do")
        case _:  # "lost"
            return StoreUnavailable(
                "FDSTORE_URL", "it lost staged pages, so it was restarted; repeat the call"
            )


def _text(value: Any) -> str:
    """Return a fact as text, also if it comes from a damaged record."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def by_number(fd: str) -> tuple[int, str]:
    """Return the place of a descriptor among others: by number, then the named ones."""
    number = fd.removeprefix("fd:")
    return (int(number) if number.isdecimal() and len(number) < 17 else 1 << 60, fd)
