"""The page of a process: its conversation, its descriptors, its children; of a pipeline its commands."""

from __future__ import annotations

from functools import cached_property

import msgspec

from fdstore.agents.runtime.eligibility import explained
from fdstore.errors import InvalidArgument, NotFound, quoted
from fdstore.inspector.reading.ask_entries import place_of_ask, read_call
from fdstore.inspector.reading.conversation import ConversationPage, conversation, find_calls
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.narrate import narrate
from fdstore.inspector.reading.outcome import Outcome, outcome_of, run_of
from fdstore.inspector.reading.pending import ProcessWait
from fdstore.inspector.reading.steps import Step, StepOrFold, fold, make_steps
from fdstore.inspector.web.page import PageRequest, WebPage
from fdstore.inspector.web.pane import choose, position_in
from fdstore.inspector.web.pipeline import PipelineGraph, pipeline_of
from fdstore.inspector.web.question_card import OpenCards, waiting_of
from fdstore.inspector.web.rendering import MAX_CHARS
from fdstore.inspector.web.saved import SavedHere, read_saved
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord, Record
from fdstore.store.clock import redis_now
from fdstore.store.keys import process_keys
from fdstore.store.processes import process_records
from fdstore.store.views.process_window import Children, DescriptorWindow, children_of, descriptor_window
from fdstore.text.quantities import format_costs

RECORDS = 60
"""Journal records on one page."""

ASKS = 50
"""Asks on one page."""

WHOLE_CHARS = 1_000_000
"""Characters of one text on the page of its record."""

MAX_POSITION = 1_000_000_000


class ProcessPage(Record, frozen=True, kw_only=True, dict=True):
    """A process, the journal records `start` to `next` - 1 of `length` as entries, and what it holds.
    `earlier` and `later` are where the pages before and after begin (None: there is none). `earlier_calls`
    are calls before this page whose results are in it, by their keys. `at` is the key of the step that the
    pane shows, "" without steps; with `errors_only` the list has only the `errors` steps that failed.
    `raw`: results are shown as they were sent. `waiting` are its questions to a person."""

    process: ProcessRecord
    outcome: Outcome | None
    start: int
    next: int
    length: int
    earlier: int | None
    later: int | None
    entries: tuple[ConversationEntry, ...]
    earlier_calls: dict[str, ConversationEntry]
    pending: ProcessWait | None
    pipeline: PipelineGraph | None
    descriptors: DescriptorWindow
    children: Children
    at: str
    errors: int
    errors_only: bool
    raw: bool
    saved: SavedHere
    waiting: OpenCards
    now_s: float

    @cached_property
    def all_steps(self) -> tuple[Step, ...]:
        """The entries as steps: results below their calls."""
        return make_steps(self.entries, self.earlier_calls)

    @property
    def has_elements(self) -> bool:
        """Whether any text has elements, so that it can be shown in words or as it was sent."""
        return any(narrate(each).has_elements for each in self.entries)

    @property
    def steps(self) -> tuple[StepOrFold, ...]:
        """The steps that are listed, equal calls together."""
        return fold(each for each in self.all_steps if each.is_error or not self.errors_only)

    @property
    def chosen(self) -> Step | None:
        """The step that the pane shows."""
        return choose(self.all_steps, self.at, errors_first=False)


def wants_raw(request: PageRequest) -> bool:
    """Return whether results are shown as they were sent to the model (`raw=1`). Raises `InvalidArgument`."""
    return request.choice("raw", ("1",)) == "1"


async def load(request: PageRequest) -> ProcessPage:
    """Load the page of a process. Raises `NotFound`, `DamagedRecord`, `InvalidArgument`."""
    store, process = request.store, request.argument("id")
    page = await load_records(request, process)
    steps = make_steps(page.entries)
    at, errors_only = request.query("at"), request.choice("errors", ("1",)) == "1"
    errors_first = errors_only or page.process.state == "failed"
    chosen = choose(steps, at, errors_first=errors_first)
    if chosen is None and at and position_in(at) != page.length:
        raise NotFound(f"step {at} of these records of process {process}")
    if chosen is None:  # it will be the next record, such as that of a call in progress
        chosen = choose(steps, "", errors_first=errors_first)
    [process_now] = await store.run(explained(store.prefix, [page.process]))
    keys = process_keys(store.prefix, process)
    before = request.number("fds_before", 0)
    tracks = await store.run(request.inspector.tracks.read(store.prefix, [process_now]))
    alone = {step.entry.call for step in steps if step.entry.kind == "result"} - {""}
    calls = find_calls(store.prefix, process, alone, page.start, RECORDS, max_chars=MAX_CHARS)
    children = await store.run(children_of(keys, page.process.next_child))
    outcome = None
    if (run := _with_outcome(process_now, children)) is not None:
        below = children.children if run.id == process else ()
        outcome = await store.run(outcome_of(store.prefix, run, below, page.now))
        outcome = msgspec.structs.replace(outcome, cost=format_costs([run]))
    return ProcessPage(
        process=process_now,
        outcome=outcome,
        start=page.start,
        next=page.next,
        length=page.length,
        earlier=max(0, page.start - RECORDS) if page.start else None,
        later=page.next if page.next < page.length else None,
        entries=page.entries,
        earlier_calls=await store.run(calls),
        pending=page.pending,
        pipeline=await store.run(pipeline_of(store.prefix, page))
        if page.process.kind == "pipeline"
        else None,
        descriptors=await store.run(descriptor_window(keys, before=before)),
        children=children,
        at="" if chosen is None else chosen.key,
        errors=sum(each.is_error for each in steps),
        errors_only=errors_only,
        raw=wants_raw(request),
        saved=await store.run(read_saved(store.prefix, [process_now], tracks)),
        waiting=await waiting_of(request, process_now),
        now_s=page.now,
    )


def _with_outcome(process: ProcessRecord, children: Children) -> ProcessRecord | None:
    """Return the process whose outcome stands first on the page of a process; None for none."""
    if process.kind is not None:
        is_bad = process.state == "failed" or (process.state == "exited" and bool(process.exit_code))
        return process if process.kind == "pipeline" and is_bad else None
    run = run_of(process, children.children)
    if run is None or run.state in ENDED or run.trouble or run.id != process.id:
        return run
    return None  # its own conversation begins with the task


async def load_records(request: PageRequest, process: str) -> ConversationPage:
    """Load the records from `from` on, or else the last ones, or those around the step `at` if it is before
    them. Raises `NotFound`, `DamagedRecord`, `InvalidArgument`."""
    store = request.store

    async def records(start: int) -> ConversationPage:
        return await store.run(conversation(store.prefix, process, start, RECORDS, max_chars=MAX_CHARS))

    position = position_in(request.query("at"))
    page = await records(request.number("from", -RECORDS, most=MAX_POSITION))
    if position is None or position >= page.start or request.query("from"):
        return page
    return await records(max(0, position - RECORDS // 2))


class RecordPage(Record, frozen=True, kw_only=True):
    """One record of a journal, with its whole texts. `raw`: results are shown as they were sent."""

    process: ProcessRecord
    position: int
    length: int
    entries: tuple[ConversationEntry, ...]
    raw: bool
    now_s: float


async def load_record(request: PageRequest) -> RecordPage:
    """Load one record. Raises `NotFound`."""
    store, process = request.store, request.argument("id")
    position = int(request.argument("position"))
    if position > MAX_POSITION:
        raise InvalidArgument("record", f"there are no more than {MAX_POSITION}")
    page: ConversationPage = await store.run(
        conversation(store.prefix, process, position, 1, max_chars=WHOLE_CHARS)
    )
    entries = tuple(each for each in page.entries if each.position == position)
    if not entries:
        raise NotFound(f"record {position} of process {process}", (f"{page.length} records, from 0",))
    return RecordPage(
        process=page.process,
        position=position,
        length=page.length,
        entries=entries,
        raw=wants_raw(request),
        now_s=page.now,
    )


class AsksPage(Record, frozen=True, kw_only=True):
    """The asks `start` to `start` + `ASKS` - 1 of a call of `run_python`. `earlier` and `later` are where the
    pages before and after begin (None: there is none)."""

    process: ProcessRecord
    call: str
    total: int
    start: int
    earlier: int | None
    later: int | None
    entries: tuple[ConversationEntry, ...]
    now_s: float


async def load_asks(request: PageRequest) -> AsksPage:
    """Load the asks of the call `call` from `from` on, or those beside the one with the number `ask`. Raises
    `NotFound`, `DamagedRecord`."""
    store, process, call = request.store, request.argument("id"), request.query("call")
    start = request.number("from", 0, most=MAX_POSITION)
    if request.query("ask") and not request.query("from"):
        number = request.number("ask", 0, most=MAX_POSITION)
        place = await store.run(place_of_ask(store.prefix, process, call, number))
        start = place - place % ASKS
    record = await store.run(process_records.record(store.prefix, process))
    entries, total = await store.run(read_call(store.prefix, process, call, start, ASKS, MAX_CHARS))
    if not total:
        raise NotFound(f"an ask of call {quoted(call)} of process {process}")
    return AsksPage(
        process=record,
        call=call,
        total=total,
        start=start,
        earlier=max(0, start - ASKS) if start else None,
        later=start + ASKS if start + ASKS < total else None,
        entries=tuple(entries),
        now_s=await store.run(redis_now()),
    )


PAGES = [
    WebPage("/process/{id}", "process.html", load, live_s=0.5),
    WebPage("/process/{id}/asks", "asks.html", load_asks, live_s=1.0),
    WebPage("/process/{id}/record/{position:int}", "record.html", load_record),
]
