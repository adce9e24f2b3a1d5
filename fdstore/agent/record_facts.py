"""Facts about a journal record for people: its time, its duration, its attempt, and what delayed it.

They are further fields of the record. `conversation` ignores them, so nothing here is sent to a model.

    {"kind": "result", "call": "toolu_1", "content": "...", "took_ms": 812, "at_ms": 1795365840123}

`at_ms` is added by `journal.lua`, by the clock of Redis; the other fields by the attempt that writes the
record. Records of older versions have none.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.agent.models.base import Retry
from fdstore.tools.wrapping import escape_surrogates

MAX_RETRIES = 10
"""How many failed tries of an answer are kept: its last ones. Their numbers tell how many there were."""

MAX_REASON_CHARS = 300

OUTAGE_S = 1.0
"""A store that takes longer than this to accept a record is an outage worth telling."""

_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""Until the end of the year 9999: a later time cannot be formatted."""


class AttemptFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The attempt that a record is the first one of: its number, the worker that runs it, when it began, and
    the losses of the process by then."""

    number: int
    worker: str = ""
    at_ms: _Milliseconds | None = None
    losses: int = 0


class FailedTry(msgspec.Struct, frozen=True, kw_only=True):
    """A try to get an answer that failed: its number, from 1, when it failed, counted from the first try, and
    the pause after it."""

    number: int
    after_ms: _Milliseconds
    pause_ms: _Milliseconds
    reason: str


class RecordFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts about one record; None and () where they are not known. `took_ms` is how long the answer or
    the tool call took; `outage_ms` how long the store took to accept the record before, in an outage."""

    at_ms: _Milliseconds | None = None
    took_ms: _Milliseconds | None = None
    attempt: AttemptFacts | None = None
    retries: tuple[FailedTry, ...] = ()
    outage_ms: _Milliseconds | None = None


_decoder = msgspec.json.Decoder(RecordFacts)


def read_facts(record: bytes) -> RecordFacts:
    """Return the facts in a journal record; none if they are damaged.

    >>> read_facts(b'{"kind":"note","text":"...","at_ms":1795365840123}').at_ms
    1795365840123
    >>> read_facts(b'{"kind":"note","at_ms":"soon"}')
    RecordFacts(at_ms=None, took_ms=None, attempt=None, retries=(), outage_ms=None)
    """
    try:
        return _decoder.decode(record)
    except (ValueError, RecursionError):
        return RecordFacts()


def add_facts(record: str, facts: RecordFacts) -> str:
    """Return a journal record with these facts.

    >>> add_facts('{"kind":"note","text":"..."}', RecordFacts(took_ms=5))
    '{"kind":"note","text":"...","took_ms":5}'
    """
    added = msgspec.json.encode(facts).decode("utf-8")
    return record if added == "{}" else f"{record[:-1]},{added[1:]}"


class FactCollector:
    """Collects the facts for the next record of an attempt."""

    def __init__(self, attempt: AttemptFacts | None = None) -> None:
        self._attempt = attempt
        self._retries: list[FailedTry] = []
        self._outage_ms: int | None = None

    def add_retry(self, retry: Retry, after_s: float) -> None:
        """Add a failed try of the model, `after_s` seconds after its first try began."""
        failed = FailedTry(
            number=retry.number,
            after_ms=_milliseconds(after_s),
            pause_ms=_milliseconds(retry.pause_s),
            reason=escape_surrogates(retry.reason)[:MAX_REASON_CHARS],
        )
        self._retries = [*self._retries, failed][-MAX_RETRIES:]

    def add_to(self, record: str, took_s: float | None) -> str:
        """Return the record with the facts collected since the last one."""
        took_ms = None if took_s is None else _milliseconds(took_s)
        facts = RecordFacts(
            took_ms=took_ms, attempt=self._attempt, retries=tuple(self._retries), outage_ms=self._outage_ms
        )
        self._attempt, self._retries, self._outage_ms = None, [], None
        return add_facts(record, facts)

    def stored_in(self, took_s: float) -> None:
        """Note how long the store took to accept a record."""
        self._outage_ms = _milliseconds(took_s) if took_s >= OUTAGE_S else None


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))
