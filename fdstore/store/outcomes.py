"""Decode replies of scripts: `ok` with values, or the type of an error with its facts."""

from __future__ import annotations

from typing import Any, get_type_hints

from fdstore.errors import (
    DamagedRecord,
    FDStoreError,
    NotFound,
    StoreLostData,
    StoreUnavailable,
    UnsafeStore,
    all_errors,
)
from fdstore.store.record_format import decode_count, decoding, format_error
from fdstore.wire.scripts import text

DECLARED = {each.reply: each for each in all_errors() if each.reply}
"""The errors whose fields are the facts of a reply. The others are made below."""


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
        case _ if kind in DECLARED:
            return _declared(DECLARED[kind], facts, process)
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
        case "gone":
            return NotFound(f"process {process}")
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


def _declared(kind: type[FDStoreError], facts: list[Any], process: str) -> FDStoreError:
    names, hints = kind.fields(), get_type_hints(kind)
    given: dict[str, Any] = {}
    if names[0] in ("process", "tree"):
        given[names[0]], names = process, names[1:]
    for name, fact in zip(names, facts, strict=False):
        given[name] = decode_count(fact) if hints[name] is int else _text(fact)
    return kind(**given)


def _text(value: Any) -> str:
    """Return a fact as text, also if it comes from a damaged record."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def by_number(fd: str) -> tuple[int, str]:
    """Return the place of a descriptor among others: by number, then the named ones."""
    number = fd.removeprefix("fd:")
    return (int(number) if number.isdecimal() and len(number) < 17 else 1 << 60, fd)
