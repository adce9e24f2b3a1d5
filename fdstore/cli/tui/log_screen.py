"""The conversation of a process on the screen: its last entries, older ones on demand, and new ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, RichLog, Static

from fdstore.cli.log_lines import LogLines, pending_line, total_line
from fdstore.cli.tui.content_screen import REFRESH_S, DescriptorsScreen
from fdstore.errors import FDStoreError
from fdstore.inspector.reading.conversation import ConversationPage, conversation
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_count

if TYPE_CHECKING:
    from fdstore.client import Store

RECORDS = 200
"""Records of the journal that are loaded at first, and with each `o`."""


class LogScreen(Screen[None]):
    """The conversation of one process."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("d,enter", "descriptors", "Descriptors"),
        Binding("o", "older", "Older"),
        Binding("k", "kill", "Kill"),
        Binding("home,g", "top", "Top", show=False),
        Binding("end,G", "bottom", "Bottom", show=False),
    ]
    DEFAULT_CSS = """
    LogScreen #title { background: $primary-background; color: $text; padding: 0 1; height: 1; }
    LogScreen #now { color: $warning; padding: 0 1; height: auto; max-height: 3; }
    LogScreen RichLog { padding: 0 1; background: $background; }
    """

    class KillAsked(Message):
        """The person wants to kill the process."""

        def __init__(self, process: str) -> None:
            super().__init__()
            self.process = process

    def __init__(self, store: Store, process: str) -> None:
        super().__init__()
        self.store = store
        self.process = process
        self._first = self._next = -RECORDS
        self._entries: list[ConversationEntry] = []
        self._losses = 0
        self._complete = self._is_loading = False
        self._written_width = 0
        self._lines = LogLines()

    def compose(self) -> ComposeResult:
        yield Static(self.process, id="title", markup=False)
        yield RichLog(wrap=False, markup=False, highlight=False, auto_scroll=False, max_lines=50_000)
        yield Static("", id="now", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        self.set_interval(REFRESH_S, self._refresh)
        self.call_later(self._refresh)

    def on_resize(self) -> None:
        if self._entries and self.size.width != self._written_width:
            self._write_all()

    async def _refresh(self) -> None:
        """Load the records since the last refresh; the first time, the last ones."""
        if self._is_loading:
            return
        self._is_loading = True
        try:
            await self._load_new()
        finally:
            self._is_loading = False

    async def _load_new(self) -> None:
        while not self._complete and self.is_mounted:
            page = await self._load(self._next, RECORDS, self._losses)
            if page is None:
                return
            if self._first < 0:
                self._first = page.start
            self._next, self._losses = page.next, page.process.losses
            self._entries += page.entries
            self._complete = page.is_complete
            self._show(page)
            if page.is_last:
                return

    async def _load(self, start: int, count: int, after_loss: int = 0) -> ConversationPage | None:
        store = self.store
        reading = conversation(store.prefix, self.process, start, count, after_loss=after_loss)
        try:
            return await asyncio.to_thread(store.run, reading)
        except FDStoreError as error:
            self._say(f"{error.type}: {error}")
            return None

    def _say(self, text: str) -> None:
        if self.is_mounted:
            self.query_one("#now", Static).update(Text(show_controls(text)))

    def _show(self, page: ConversationPage) -> None:
        log = self.query_one(RichLog)
        at_end = log.scroll_y >= log.max_scroll_y
        self._write(page.entries)
        if at_end or not log.max_scroll_y:
            log.scroll_end(animate=False)
        self._say("" if page.pending is None else pending_line(page.pending, page.now).strip())
        record = page.process
        parts = [record.id, record.state, record.program and f"program {record.program}"]
        parts.append(format_count(page.length, "record"))
        if self._first > 0:
            parts.append(f"from record {self._first + 1}: o shows older ones")
        if page.is_complete:
            parts.append(total_line(record, page.codes).strip())
        self.query_one("#title", Static).update(Text(show_controls(", ".join(filter(None, parts)), keep="")))
        if not page.length and record.state == "open":
            self._say(
                f"{record.id} is run by a client program: it has no conversation; d shows what it holds"
            )

    def _write(self, entries: tuple[ConversationEntry, ...] | list[ConversationEntry]) -> None:
        log = self.query_one(RichLog)
        self._written_width = self.size.width
        for entry in entries:
            # the text of others is escaped by then: the only escape sequences are the colours
            for line in self._lines.of(entry, columns=max(40, self.size.width - 4), coloured=True):
                log.write(Text.from_ansi(line), scroll_end=False)

    def _write_all(self) -> None:
        self.query_one(RichLog).clear()
        self._write(self._entries)

    async def action_older(self) -> None:
        """Load the records before those that are shown."""
        if self._first <= 0:
            return
        begin = max(0, self._first - RECORDS)
        older: list[ConversationEntry] = []
        at = begin
        while at < self._first:
            page = await self._load(at, self._first - at)
            if page is None or page.next <= at:
                return
            older += [entry for entry in page.entries if entry.position < self._first]
            at = page.next
        self._first = begin
        self._entries = older + self._entries
        self._write_all()

    def action_top(self) -> None:
        self.query_one(RichLog).scroll_home(animate=False)

    def action_bottom(self) -> None:
        self.query_one(RichLog).scroll_end(animate=False)

    def action_descriptors(self) -> None:
        self.app.push_screen(DescriptorsScreen(self.store, self.process))

    def action_kill(self) -> None:
        self.post_message(self.KillAsked(self.process))
