"""The spans of one process on the timeline: from the entries of its whole journal, and what it does. Pure.

    queue       it waited for a worker: until its first attempt, or after its worker was lost
    processes   it waited for other processes, and its slot was free
    person      it waited for a person, likewise
    answer      the model answered
    call        a tool ran; red if that failed, but at its end alone if it waited for others, as `spawn` does
    loss retry  marks without a length: a worker that was lost, a failed try of the model
    unread      a part of its journal that is not read yet

A journal of any length has few spans: neighbours of one kind are merged into one that has their count,
those with the smallest gaps between them first. Nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from itertools import pairwise
from typing import Literal

import msgspec

from fdstore.inspector.reading.build_entries import EntryBuilder
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.narrate import narrate
from fdstore.inspector.web.context_growth import ContextGrowth
from fdstore.model.lifecycle import ENDED, PERSON
from fdstore.model.records import ProcessRecord, Record
from fdstore.store.processes.losses import HOW_LOST, Loss
from fdstore.text.quantities import format_count
from fdstore.text.tokens import estimate_tokens
from fdstore.tools.catalogue import BUILT_IN

SpanKind = Literal["queue", "processes", "person", "answer", "call", "loss", "retry", "unread"]

MAX_SPANS = 80
"""Spans of one row."""

MAX_KEPT = 4 * MAX_SPANS
"""Spans that are kept of one journal; more are merged."""

MAX_LABEL_CHARS = 80

WAITING_TOOLS = frozenset({"wait", "ask_person", *(name for name, tool in BUILT_IN.items() if tool.starts)})
"""The tools that do nothing themselves while their call takes time: another process does, or a person."""

ROUNDING_S = 0.002
"""Records have their times in whole milliseconds."""

PLURALS: dict[SpanKind, str] = {
    "queue": "waits for a worker",
    "processes": "waits for other processes",
    "person": "waits for a person",
    "answer": "answers",
    "call": "calls",
    "loss": "lost workers",
    "retry": "failed tries of the model",
}


class TimelineSpan(Record, frozen=True, kw_only=True):
    """Something that a process did from `at` to `until` (None: it does so now), or `count` such things with
    nothing else of their kind between them. `position` is that of the (first) record that says so. `is_wait`:
    a call that waited for others, so what failed is not this process."""

    kind: SpanKind
    label: str
    at: float
    until: float | None
    position: int
    is_error: bool = False
    is_wait: bool = False
    count: int = 1

    @property
    def text(self) -> str:
        """The span in words.

        >>> TimelineSpan(kind="call", label="read_fd", at=0.0, until=1.0, position=1, count=12).text
        '12 calls of read_fd'
        """
        if self.kind == "unread":
            return f"{format_count(self.count, 'record')} not read yet"
        if self.count == 1:
            is_now = self.until is None and self.kind in ("answer", "call")
            return self.label + (", in progress" if is_now else ", failed" if self.is_error else "")
        failed = "failed " if self.is_error else ""
        of = f" of {self.label}" if self.kind == "call" and self.label else ""
        return f"{self.count} {failed}{PLURALS[self.kind]}{of}"


def merge(spans: Sequence[TimelineSpan], most: int = MAX_SPANS) -> list[TimelineSpan]:
    """Return these spans by time, so that there are at most `most` of them if there are not more kinds. Those
    in progress, failed ones, waits and others are not merged with each other.

    >>> calls = [TimelineSpan(kind="call", label="put", at=at, until=at + 1, position=at) for at in (0, 2, 9)]
    >>> [(span.text, span.at, span.until) for span in merge(calls, 2)]
    [('2 calls of put', 0, 3), ('put', 9, 10)]
    """
    alike: dict[tuple[SpanKind, bool, bool, bool], list[TimelineSpan]] = {}
    for span in sorted(spans, key=lambda each: each.at):
        alike.setdefault((span.kind, span.is_error, span.until is None, span.is_wait), []).append(span)
    gaps = [
        (later.at - (earlier.until or 0.0), kind, number)
        for kind, group in alike.items()
        if not kind[2]
        for number, (earlier, later) in enumerate(pairwise(group))
    ]
    joined = {(kind, number) for _, kind, number in nsmallest(len(spans) - most, gaps)}
    found = []
    for kind, group in alike.items():
        begin = 0
        for number in range(len(group)):
            if (kind, number) not in joined:
                found.append(_join(group[begin : number + 1]))
                begin = number + 1
    return sorted(found, key=lambda each: each.at)


def _join(spans: Sequence[TimelineSpan]) -> TimelineSpan:
    first = spans[0]
    if len(spans) == 1:
        return first
    is_same = all(each.label == first.label for each in spans)
    return msgspec.structs.replace(
        first,
        label=first.label if is_same else "",
        until=max(each.until or 0.0 for each in spans),
        count=sum(each.count for each in spans),
    )


def _loss(loss: Loss) -> TimelineSpan:
    label = f"loss {loss.number}: {HOW_LOST[loss.how]}"
    return TimelineSpan(kind="loss", label=label, at=loss.at, until=loss.at, position=loss.records)


class Track:
    """The spans of a process, and the growth of its context, from its journal, of which the first `next`
    records were added."""

    def __init__(self, process: ProcessRecord) -> None:
        self.began_at = process.started_at
        self.next = 0
        self.length = 0
        self.ready_at: float | None = None
        """The time when it last became ready; `claimed_at`: when it was last claimed."""
        self.losses: tuple[Loss, ...] = ()
        """The losses that are written down."""
        self.claimed_at: float | None = None
        self.growth = ContextGrowth()
        self._builder = EntryBuilder(0, process.started_at, estimate_tokens)
        self._attempt_at = 0.0
        self._losses = 0
        self._last_at: float | None = None
        self._spans: list[TimelineSpan] = []

    @property
    def unread(self) -> int:
        """The number of records that were not added yet."""
        return self.length - self.next

    def add(self, records: Sequence[bytes]) -> None:
        """Add the next records."""
        for entry in self._builder.add(records, self.next):
            self._spans += self._spans_of(entry)
            self.growth.add(entry)
        self.next += len(records)
        if len(self._spans) > MAX_KEPT:
            self._spans = merge(self._spans, MAX_KEPT // 2)

    def spans(self, process: ProcessRecord) -> tuple[TimelineSpan, ...]:
        """Return the spans of a process that is in this state."""
        known = {each.records for each in self.losses}
        spans = [each for each in self._spans if each.kind != "loss" or each.position not in known]
        return tuple(merge([*spans, *map(_loss, self.losses), *self._now(process)]))

    def _spans_of(self, entry: ConversationEntry) -> Iterable[TimelineSpan]:
        at = entry.at
        if at is None:
            return
        if entry.kind == "attempt":
            yield from self._wait_before(entry, at)
            self._attempt_at, self._losses = at, entry.losses
            if entry.before == "loss":
                yield self._span(entry, "loss", f"lost; attempt {entry.number}", at, at)
        if entry.facts.people and entry.duration_s is not None:
            self._waited_for_person(at - entry.duration_s)
        bar = narrate(entry).span
        if bar is not None and bar.took_s is not None:
            yield self._span(entry, bar.kind, bar.label, at - bar.took_s, at)
        self._last_at = at

    def _wait_before(self, entry: ConversationEntry, at: float) -> Iterable[TimelineSpan]:
        """Yield the wait that an attempt ended."""
        began = self._last_at if self._last_at is not None else self.began_at
        if began is None or began >= at:
            return
        if entry.before == "wait":
            yield self._span(entry, "processes", "waited for other processes", began, at)
        else:
            yield self._span(entry, "queue", "waited for a worker", began, at)

    def _waited_for_person(self, since: float) -> None:
        """Note that the waits from then on were for a person: the result of their call says so."""
        for number in range(len(self._spans) - 1, -1, -1):
            span = self._spans[number]
            if span.at < since - ROUNDING_S:
                break
            if span.kind == "processes":
                told = {"kind": "person", "label": "waited for a person"}
                self._spans[number] = msgspec.structs.replace(span, **told)

    def _span(
        self, entry: ConversationEntry, kind: SpanKind, label: str, at: float, until: float | None
    ) -> TimelineSpan:
        return TimelineSpan(
            kind=kind,
            label=label[:MAX_LABEL_CHARS],
            at=at,
            until=until,
            position=entry.position,
            is_error=entry.is_error,
            is_wait=kind == "call" and entry.tool in WAITING_TOOLS,
        )

    def _now(self, process: ProcessRecord) -> Iterable[TimelineSpan]:
        """Yield what a process does now, and what it did since its last record."""
        last_at = self._last_at if self._last_at is not None else self.began_at
        if last_at is None:
            return
        if self.unread:
            yield TimelineSpan(
                kind="unread",
                label="not read yet",
                at=last_at,
                until=process.ended_at if process.state in ENDED else None,
                position=self.next,
                count=self.unread,
            )
            return
        if process.state == "open":  # a program runs it; its calls are not recorded
            return

        def now(
            kind: SpanKind, label: str, at: float, until: float | None = None, **more: bool
        ) -> TimelineSpan:
            label = label[:MAX_LABEL_CHARS]
            return TimelineSpan(kind=kind, label=label, at=at, until=until, position=self.next, **more)

        is_claimed = (self.claimed_at or 0.0) > max(self._attempt_at, last_at) + ROUNDING_S
        if process.state == "ready" or is_claimed or (process.state in ENDED and self._is_unclaimed(process)):
            until = self.claimed_at if is_claimed else process.ended_at
            queued_at = max(last_at, self.ready_at or 0.0)
            if self._attempt_at:
                is_parked = self._builder.open_calls and process.losses == self._losses
                if is_parked and queued_at > last_at:
                    yield now("processes", "waited for other processes", last_at, queued_at)
                else:
                    queued_at = last_at
            said = "waits for a worker" if process.state == "ready" else "waited for a worker"
            yield now("queue", said, queued_at, None if process.state == "ready" else until)
        calls = self._builder.open_calls
        since = max(last_at, self.claimed_at or 0.0)
        match process.state:
            case "waiting":
                if PERSON in process.waiting_for:  # no call is at work
                    yield now("person", "waits for a person", last_at)
                    return
                yield now("processes", "waits for other processes", last_at)
                for call in calls:
                    yield self._span(call, "call", call.tool, call.at or last_at, None)
            case "running" if calls:
                more = f"; then {', '.join(each.tool for each in calls[1:])}" if calls[1:] else ""
                yield self._span(calls[0], "call", calls[0].tool + more, since, None)
            case "running" if process.kind is None:
                yield now("answer", "answer", since)
            case "failed" | "cancelled" if calls and process.ended_at is not None:
                cut = {"is_error": True, "is_wait": calls[0].tool in WAITING_TOOLS}
                yield now("call", f"{calls[0].tool}, not ended", last_at, process.ended_at, **cut)

    def _is_unclaimed(self, process: ProcessRecord) -> bool:
        return self.ready_at is not None and not process.attempt
