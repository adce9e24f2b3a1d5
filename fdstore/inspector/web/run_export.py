"""A run as one HTML page that needs nothing else: its head, its timeline, each process with its conversation
and its descriptors.

The page is made piece by piece. Each piece is an operation on the store that returns HTML, so a blocking and
an awaiting client write the same page. Memory holds the records of the processes, and one piece:

    run = RunExport(store.prefix, "triage")
    for step in run.prepare():
        store.run(step)
    write(run.head())
    for piece in run.body():
        write(store.run(piece))

The head says how many places were redacted, so with patterns the body is made first. The page has no script
and loads nothing; its links lead to its own anchors (`run_links`). `run_data` has what is shown of records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment
from markupsafe import Markup

import fdstore
from fdstore.errors import DamagedRecord, FDStoreError, NotFound
from fdstore.inspector.reading.ask_entries import ASKS_AT_ONCE, read_call
from fdstore.inspector.reading.conversation import conversation
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.outcome import Outcome, outcome_of
from fdstore.inspector.web.ask_tracks import AskTracks
from fdstore.inspector.web.journal_tracks import JournalTracks
from fdstore.inspector.web.rendering import MAX_CHARS, STATIC, page_templates
from fdstore.inspector.web.run_data import LONGEST_ANSWER, PREVIEW_CHARS, PREVIEW_LINES, RunHead, RunTexts
from fdstore.inspector.web.run_links import RunLinks
from fdstore.inspector.web.saved import read_saved
from fdstore.inspector.web.timeline import WHOLE, make_timeline, with_rows
from fdstore.inspector.web.whole_tree import WholeTree, whole_tree
from fdstore.model.records import Descriptor, ProcessRecord, TreeLimits, Unreadable
from fdstore.store.clock import redis_now
from fdstore.store.contents.byte_reading import read_bytes
from fdstore.store.contents.descriptors import listing
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import unreadable
from fdstore.text.quantities import format_costs
from fdstore.text.redaction import Redactor
from fdstore.wire.operation import Operation

RECORDS = 100
"""Journal records of one piece."""

DESCRIPTORS = 25
"""Descriptors of one piece."""

UNCUT = 1 << 40
"""Characters of a text that is redacted, and cut afterwards."""

LEARNED_BYTES = 1 << 20
"""Bytes of a content that are searched at a time for what is redacted."""

LONGEST_LINE, LINE_OVERLAP = 4 << 20, 1 << 16
"""Bytes of a line that are searched at a time, and those that are searched again with what follows."""

READ_BYTES, SEARCHED_BYTES = 8_000, 256_000
"""Bytes that are read of a content for its preview; if they are searched for what is redacted."""

MAX_ROUNDS = 10_000
"""Rounds that read parts of the journals behind the timeline: a run that goes on may outrun them."""

CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLES = ("app.css", "run.css")


class RunExport:
    """The export of one tree. `redact` are patterns of what the page must not say. Raises `InvalidArgument`
    for an invalid one."""

    def __init__(self, prefix: str, tree: str, redact: Sequence[str] = ()) -> None:
        self.prefix = prefix
        self.redactor = Redactor(redact)
        self._tree = tree
        self._whole: WholeTree
        self._head: RunHead
        self._outcome: Outcome | None = None
        self.links: RunLinks
        self.texts: RunTexts
        self.parts: Any

    @property
    def process_count(self) -> int:
        """The number of processes of the run, as its tree counts them."""
        return sum(process.kind != "asks" for process in self._whole.processes)

    def prepare(self) -> Iterator[Operation[None]]:
        """Yield what is to be run before the head and the body are made. The first one raises `NotFound`,
        `InvalidArgument`, `NewerFormat`, `DamagedRecord`."""
        yield self._read_tree()
        if self.redactor:
            yield from self._learn()
        tracks, asks = JournalTracks(), AskTracks()
        for _ in range(MAX_ROUNDS):
            yield self._read_journals(tracks, asks)
            if not (self._head.timeline and self._head.timeline.unread):
                break

    def head(self) -> str:
        """Return the beginning of the page, up to the first process."""
        return self._templates.get_template("run.html").render(
            page=self._head,
            outcome=None if self._outcome is None else self.texts.outcome(self._outcome),
            places=self.redactor.places if self.redactor else None,
            csp=CSP,
            css=styles(),
            max_chars=MAX_CHARS,
            preview_lines=PREVIEW_LINES,
            preview_chars=PREVIEW_CHARS,
        )

    def body(self) -> Iterator[Operation[str]]:
        """Yield the rest of the page, piece by piece."""
        for number in range(len(self._whole.processes)):
            yield from _Section(self, self._whole.processes[number], self._head.processes[number]).pieces()
        yield self._foot()

    def _read_tree(self) -> Operation[None]:
        """Read the tree, and make the head without a timeline and a curve."""
        whole = self._whole = yield from whole_tree(self.prefix, self._tree)
        self.links = RunLinks(self._tree, whole.processes, self.redactor)
        self.texts = RunTexts(self.redactor, self.links)
        self._templates = run_templates(self.links)
        self.parts = self._templates.get_template("run_parts.html").module
        processes = [self.texts.process(each) for each in whole.processes]
        self._head = RunHead(
            tree=self.links.name(self._tree),
            task=self.texts.line((yield from self._task())),
            root=next((each for each in processes if each.id == self.links.name(self._tree)), None),
            processes=processes,
            total=whole.total,
            asks=whole.counts.asks,
            states=whole.counts.states,
            tokens=whole.tokens,
            cost=self.redactor.text(format_costs(whole.processes)),
            bytes=whole.tree.bytes,
            contents=whole.tree.fds,
            created_at=whole.tree.created_at,
            used_at=whole.tree.used_at,
            unreadable=self.redactor.record(whole.tree.unreadable),
            timeline=None,
            window=WHOLE,
            saved=None,
            version=fdstore.__version__,
            now_s=(yield from redis_now()),
        )
        if whole.run is not None:
            now_s, most = self._head.now_s, LONGEST_ANSWER
            self._outcome = yield from outcome_of(self.prefix, whole.run, whole.processes, now_s, most)

    def _task(self) -> Operation[str]:
        """Return the task of the root; "" if it has none, or it cannot be read."""
        try:
            page = yield from conversation(self.prefix, self._tree, 0, 1, max_chars=UNCUT)
        except (NotFound, DamagedRecord):
            return ""
        return next((each.text for each in page.entries if each.kind in ("task", "commands")), "")

    def _learn(self) -> Iterator[Operation[None]]:
        """Yield the search of all whole texts for what is to be redacted, in bounded memory."""
        seen: set[str] = set()
        for process in self._whole.processes:
            yield self._learn_conversation(process)
            yield self._learn_contents(process, seen)

    def _learn_conversation(self, process: ProcessRecord) -> Operation[None]:
        start = 0
        while process.kind != "asks":
            try:
                page = yield from conversation(self.prefix, process.id, start, RECORDS, max_chars=UNCUT)
            except (NotFound, DamagedRecord):
                return
            for entry in page.entries:
                self.redactor.learn(entry.text)
                self.redactor.learn(json.dumps(entry.arguments, ensure_ascii=False))
            if page.is_last or page.next <= start:
                return
            start = page.next

    def _learn_contents(self, process: ProcessRecord, seen: set[str]) -> Operation[None]:
        handle = ProcessHandle(process_keys(self.prefix, process.id), TreeLimits())
        try:
            held = (yield from listing(handle)).descriptors
        except DamagedRecord:
            return
        for each in held:
            if each.kind == "text":
                with suppress(FDStoreError):  # the part of the process says so
                    yield from self._learn_content(handle, each, seen)

    def _learn_content(
        self, handle: ProcessHandle, descriptor: Descriptor, seen: set[str]
    ) -> Operation[None]:
        rest, at = b"", 0
        while at < descriptor.bytes:
            info, data = yield from read_bytes(handle, descriptor.fd, at, LEARNED_BYTES)
            if not data or (at == 0 and info.content in seen):
                return
            seen.add(info.content)
            at += len(data)
            lines, _, rest = (rest + data).rpartition(b"\n")
            if len(rest) > LONGEST_LINE or at >= descriptor.bytes:
                lines, rest = lines + b"\n" + rest, rest[-LINE_OVERLAP:]
            self.redactor.learn(lines.decode("utf-8", "replace"))

    def _read_journals(self, tracks: JournalTracks, asks: AskTracks) -> Operation[None]:
        """Read a part of the journals; make the timeline of what is read."""
        processes = self._whole.processes
        in_rows = with_rows(processes)
        read = yield from tracks.read(self.prefix, in_rows)
        answers = yield from asks.read(self.prefix, in_rows)
        timeline = make_timeline(processes, {**read, **answers}, self._whole.total)
        if timeline is None or not timeline.unread:
            timeline = self.texts.timeline(timeline)
        saved = yield from read_saved(self.prefix, in_rows, read)
        self._head = msgspec.structs.replace(self._head, timeline=timeline, saved=saved)

    def _foot(self) -> Operation[str]:
        yield from ()
        return str(self.parts.foot(self._head))


class _Section:
    """The part of the page about one process: as it is stored, and as it is shown."""

    def __init__(self, run: RunExport, process: ProcessRecord, shown: ProcessRecord) -> None:
        self._run = run
        self._process = process
        self._shown = shown
        self._handle = ProcessHandle(process_keys(run.prefix, process.id), TreeLimits())
        self._held: list[Descriptor] = []
        self._next: int | None = 0
        """The position at which the next piece of the conversation begins; None after its end."""
        self._day = ""

    def pieces(self) -> Iterator[Operation[str]]:
        yield self._begin()
        while self._next is not None:
            yield self._asks(self._next) if self._process.kind == "asks" else self._conversation(self._next)
        for start in range(0, len(self._held), DESCRIPTORS):
            yield self._descriptors(start)
        yield self._end()

    def _end(self) -> Operation[str]:
        yield from ()
        return "</section>\n"

    def _begin(self) -> Operation[str]:
        problems: tuple[Unreadable, ...] = ()
        try:
            found = yield from listing(self._handle)
            self._held, problems = found.descriptors, tuple(found.unreadable)
        except DamagedRecord as error:
            problems = (unreadable(error),)
        self._run.links.hold(self._shown.id, [self._run.texts.fd(each.fd) for each in self._held])
        problems = self._run.redactor.record(problems)
        return str(self._run.parts.begin(self._shown, len(self._held), problems))

    def _conversation(self, start: int) -> Operation[str]:
        run = self._run
        most = UNCUT if run.redactor else MAX_CHARS
        try:
            page = yield from conversation(run.prefix, self._process.id, start, RECORDS, max_chars=most)
        except (NotFound, DamagedRecord) as error:
            self._next = None
            return str(run.parts.problem(run.redactor.text(str(error))))
        self._next = None if page.is_last or page.next <= start else page.next
        pending = "" if page.pending is None else run.redactor.text(str(page.pending))
        return self._entries(page.entries, pending, page.length)

    def _asks(self, start: int) -> Operation[str]:
        """Return some questions of a call, and their answers."""
        run, process = self._run, self._process
        self._next = None
        try:
            chars = UNCUT if run.redactor else MAX_CHARS
            entries, total = yield from read_call(
                run.prefix, process.parent or "", process.call or "", start, ASKS_AT_ONCE, chars
            )
        except (NotFound, DamagedRecord) as error:
            return str(run.parts.problem(run.redactor.text(str(error))))
        if start + ASKS_AT_ONCE < total:
            self._next = start + ASKS_AT_ONCE
        return self._entries(entries, "", 0)

    def _entries(self, entries: Sequence[ConversationEntry], pending: str, length: int) -> str:
        shown = [self._run.texts.entry(self._process.id, each) for each in entries]
        html = str(self._run.parts.entries(self._shown.id, shown, self._day, pending, length))
        days = [each.at for each in shown if each.at is not None]
        self._day = page_templates().filters["day"](days[-1]) if days else self._day
        return html

    def _descriptors(self, start: int) -> Operation[str]:
        run = self._run
        most = SEARCHED_BYTES if run.redactor else READ_BYTES
        shown = []
        for each in self._held[start : start + DESCRIPTORS]:
            problem, data = "", b""
            if each.kind == "text" and each.bytes:
                try:
                    _, data = yield from read_bytes(self._handle, each.fd, 0, most)
                except FDStoreError as error:
                    problem = run.redactor.text(str(error))
            found = run.texts.descriptor(each, data)
            shown.append(msgspec.structs.replace(found, left_out=problem) if problem else found)
        return str(run.parts.descriptors(self._shown.id, shown, start == 0))


def run_templates(links: RunLinks) -> Environment:
    """Return the environment of the templates of one page."""
    environment = page_templates().overlay()
    environment.globals = {**page_templates().globals, "links": links}
    return environment


@cache
def styles() -> Markup:
    """Return the styles of the page: our own files, without a tag."""
    css = "\n".join((STATIC / name).read_text("utf-8") for name in STYLES)
    assert "<" not in css
    return Markup(css)
