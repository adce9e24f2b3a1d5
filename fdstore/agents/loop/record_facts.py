"""Facts about a journal record for people: its time, its duration, its attempt, and what delayed it.

They are further fields of the record. `conversation` ignores them, so nothing here is sent to a model.

    {"kind": "result", "call": "toolu_1", "content": "...", "took_ms": 812, "at_ms": 1795365840123}

`at_ms` is added by `journal.lua`, by the clock of Redis; the other fields by the attempt that writes the
record. A record without them is read too.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from fdstore.agents.loop.models.base import Retry
from fdstore.store.processes.leases import Claim
from fdstore.text.surrogates import escape_surrogates

MAX_RETRIES = 10
"""The failed tries of an answer that are kept: its last ones. Their numbers tell how many there were."""

MAX_REASON_CHARS = 300

OUTAGE_S = 1.0
"""A store that takes longer than this to accept a record is an outage worth telling."""

_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""Until the end of the year 9999: a later time cannot be formatted."""


Before = Literal["", "loss", "wait", "return"]
"""The end of the attempt before: its worker was lost, it waited, or its worker returned it."""


class AttemptFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The attempt that a record is the first one of: its number, the worker that runs it, when it began, the
    losses of the process by then, and what ended the attempt `before`."""

    number: int
    worker: str = ""
    at_ms: _Milliseconds | None = None
    losses: int = 0
    before: Before = ""


class FailedTry(msgspec.Struct, frozen=True, kw_only=True):
    """A try to get an answer that failed: its number, from 1, when it failed, counted from the first try, and
    the pause after it."""

    number: int
    after_ms: _Milliseconds
    pause_ms: _Milliseconds
    reason: str


class RecordFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts about one record; None, "" and () where they are not known. `took_ms` is how long the answer
    or the tool call took; `outage_ms` how long the store took to accept the record before, in an outage.
    `turn` is the number of an answer in its conversation; `tool` and `key` are those of the call of a
    result (`conversation.ToolCall`), so that a part of a long journal can be read alone."""

    at_ms: _Milliseconds | None = None
    took_ms: _Milliseconds | None = None
    attempt: AttemptFacts | None = None
    retries: tuple[FailedTry, ...] = ()
    outage_ms: _Milliseconds | None = None
    turn: int = 0
    tool: str = ""
    key: str = ""


_decoder = msgspec.json.Decoder(RecordFacts)


def read_facts(record: bytes) -> RecordFacts:
    """Return the facts in a journal record; none if they are damaged.

    >>> read_facts(b'{"kind":"note","text":"...","at_ms":1795365840123}').at_ms
    1795365840123
    >>> read_facts(b'{"kind":"note","at_ms":"soon"}')
    RecordFacts(at_ms=None, took_ms=None, attempt=None, retries=(), outage_ms=None, turn=0, tool='', key='')
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


def begin_attempt(claim: Claim) -> AttemptFacts:
    """Return the facts about a claimed attempt."""
    earlier = 0
    for record in reversed(claim.journal):
        if b'"attempt":{' in record and (facts := read_facts(record).attempt):
            earlier = facts.losses
            break
    before: Before = "wait" if claim.has_waited else "return"
    if claim.losses > earlier:
        before = "loss"
    return AttemptFacts(
        number=claim.attempt,
        worker=escape_surrogates(claim.worker),
        at_ms=_milliseconds(claim.claimed_at),
        losses=claim.losses,
        before=before if claim.attempt > 1 else "",
    )


def answer_age_s(claim: Claim) -> float | None:
    """Return how long before the claim the last answer was written; None if that is not known."""
    for record in reversed(claim.journal):
        if b'"kind":"assistant"' in record[:40]:
            at_ms = read_facts(record).at_ms
            return None if at_ms is None else max(0.0, claim.claimed_at - at_ms / 1000)
    return None


class FactCollector:
    """Collects the facts for the next record of an attempt."""

    def __init__(self, attempt: AttemptFacts | None = None) -> None:
        self._known: dict[str, Any] = {"attempt": attempt}
        self._retries: list[FailedTry] = []

    def tell(self, **facts: Any) -> None:
        """Add fields of `RecordFacts`."""
        self._known |= facts

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
        facts = RecordFacts(took_ms=took_ms, retries=tuple(self._retries), **self._known)
        self._known, self._retries = {}, []
        return add_facts(record, facts)

    def stored_in(self, took_s: float) -> None:
        """Note how long the store took to accept a record."""
        if took_s >= OUTAGE_S:
            self._known["outage_ms"] = _milliseconds(took_s)


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))
