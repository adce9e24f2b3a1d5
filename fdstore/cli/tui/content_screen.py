"""The descriptors of a process on the screen, and the text of one of them, page by page."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Static

from fdstore.client import Process, Store
from fdstore.errors import FDStoreError
from fdstore.model.records import Descriptor
from fdstore.store.contents.descriptors import list_page
from fdstore.store.processes.processes import open_child
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_count, format_number, format_size

MAX_FDS = 500
MAX_CHARS = 100_000
"""Characters of a page that are shown; a page may be of any size."""

COLUMNS = ("FD", "STATE", "TYPE", "SIZE", "LINES", "PAGES", "SOURCE")
NUMBERS = frozenset({"SIZE", "LINES", "PAGES"})

REFRESH_S = 1.0
"""The time between two looks of a screen at what it shows."""


class Rows(DataTable[Text]):
    """A table whose rows can be looked into."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Open")]


def cell(text: str, *, right: bool = False, style: str = "") -> Text:
    """Return a cell: a `Text`, since a table reads markup in a str."""
    return Text(show_controls(text, keep=""), style=style, justify="right" if right else "left")


class DescriptorsScreen(Screen[None]):
    """The descriptors of one process."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("r", "load", "Refresh"),
    ]
    DEFAULT_CSS = """
    DescriptorsScreen #title { background: $primary-background; padding: 0 1; height: 1; }
    DescriptorsScreen DataTable { height: 1fr; }
    """

    def __init__(self, store: Store, process: str) -> None:
        super().__init__()
        self.store = store
        self.process = process

    def compose(self) -> ComposeResult:
        yield Static(f"{self.process}: descriptors", id="title", markup=False)
        yield Rows(cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        self.call_later(self.action_load)

    async def action_load(self) -> None:
        """Read the descriptors again."""
        try:
            found, total = await asyncio.to_thread(self._read)
        except FDStoreError as error:
            self.notify(show_controls(f"{error.type}: {error}"), severity="error", markup=False)
            return
        table = self.query_one(DataTable)
        table.clear(columns=True)
        rows = [_cells(each) for each in found]
        for number, name in enumerate(COLUMNS):
            widest = max((row[number].cell_len for row in rows), default=0)
            table.add_column(cell(name, right=name in NUMBERS), width=max(widest, len(name)))
        for each, row in zip(found, rows, strict=True):
            table.add_row(*row, key=each.fd)
        more = f", the first {MAX_FDS}" if total > len(found) else ""
        said = f"{self.process}: {format_count(total, 'descriptor')}{more}"
        self.query_one("#title", Static).update(Text(said if total else f"{self.process} holds nothing"))

    def _read(self) -> tuple[list[Descriptor], int]:
        store = self.store
        handle = store.run(open_child(store.prefix, self.process))
        return store.run(list_page(handle, 1, MAX_FDS))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if event.row_key.value:
            self.app.push_screen(ContentScreen(self.store, self.process, event.row_key.value))


def _cells(d: Descriptor) -> list[Text]:
    cells = (
        *(d.fd, d.state, d.media_type, format_size(d.bytes)),
        *(format_number(d.lines) if d.kind == "text" else "-", format_number(d.pages), d.source),
    )
    return [cell(text, right=name in NUMBERS) for name, text in zip(COLUMNS, cells, strict=True)]


class ContentScreen(Screen[None]):
    """The text of one descriptor: a page at a time; the last page of a stream is followed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("n,right", "turn(1)", "Next page"),
        Binding("p,left", "turn(-1)", "Previous"),
        Binding("g", "first", "First"),
        Binding("G", "last", "Last"),
        Binding("f", "follow", "Follow"),
    ]
    DEFAULT_CSS = """
    ContentScreen #title { background: $primary-background; padding: 0 1; height: 1; }
    ContentScreen VerticalScroll { padding: 0 1; }
    ContentScreen #text { width: 100%; height: auto; }
    """

    def __init__(self, store: Store, process: str, fd: str, *, follow: bool = False) -> None:
        super().__init__()
        self.store = store
        self.process, self.fd = process, fd
        self._page = 1
        self._follows = follow
        self._client: Process | None = None
        self._shown: tuple[int, int, str] | None = None

    def compose(self) -> ComposeResult:
        yield Static(f"{self.process} {self.fd}", id="title", markup=False)
        with VerticalScroll():
            yield Static("", id="text", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        self.set_interval(REFRESH_S, self._refresh)
        self.call_later(self._refresh)

    async def _refresh(self) -> None:
        """Show the page, unless nothing has changed."""
        try:
            d, text = await asyncio.to_thread(self._read)
        except FDStoreError as error:
            self._title(f"{self.process} {self.fd}: {error.type}: {error}")
            return
        if not self.is_mounted:
            return
        state = (self._page, d.bytes, d.state)
        if state == self._shown:
            return
        self._shown = state
        follows = ", followed" if self._follows and d.state == "open" else ""
        lines = f", {format_count(d.lines, 'line')}" if d.kind == "text" else ""
        size = format_size(d.bytes) + lines
        where = f"{self.process} {d.fd}  page {format_number(self._page)} of {format_number(d.pages)}"
        self._title(f"{where}  {size}  {d.state}{follows}  {d.source}")
        self.query_one("#text", Static).update(Text(show_controls(text)))
        if self._follows:
            self.call_after_refresh(self.query_one(VerticalScroll).scroll_end, animate=False)

    def _title(self, text: str) -> None:
        if self.is_mounted:
            self.query_one("#title", Static).update(Text(show_controls(text, keep="")))

    def _read(self) -> tuple[Descriptor, str]:
        store = self.store
        if self._client is None:
            self._client = Process(store, store.run(open_child(store.prefix, self.process)))
        d = self._client.stat(self.fd)
        if d.kind == "bytes":
            size = format_count(d.bytes, "byte")
            return d, f"{d.media_type}: {size}; fdstore cat {self.process} {d.fd} > FILE"
        if self._follows:
            self._page = d.pages
        self._page = max(1, min(self._page, d.pages))
        text = self._client.read(self.fd, start=self._page).text
        if len(text) > MAX_CHARS:
            text = f"{text[:MAX_CHARS]}\n... ({format_number(len(text))} characters on this page)"
        return d, text

    async def action_turn(self, by: int) -> None:
        self._follows = False
        self._page += by
        await self._refresh()
        self.query_one(VerticalScroll).scroll_home(animate=False)

    async def action_first(self) -> None:
        self._page = 1
        await self.action_turn(0)

    async def action_last(self) -> None:
        self._page = 1 << 53
        await self.action_turn(0)

    async def action_follow(self) -> None:
        """Stay at the last page while the stream grows."""
        self._follows, self._shown = True, None
        await self._refresh()
