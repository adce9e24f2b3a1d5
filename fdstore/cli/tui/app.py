"""The tables of `fdstore top` on the screen: refreshed, sorted, filtered; keys look into a row or kill it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Label, Static

from fdstore.agents.runtime.eligibility import live_explained
from fdstore.cli.colours import STATE_STYLES
from fdstore.cli.tables import fit, shorten, shorten_inside, width
from fdstore.cli.top_rows import ORDERS, TABLES, VIEWS, TopRow, asking_line, headline, rows_of
from fdstore.cli.tui.content_screen import ContentScreen, DescriptorsScreen, Rows, cell
from fdstore.cli.tui.help_screen import HelpScreen
from fdstore.cli.tui.log_screen import LogScreen
from fdstore.cli.watch import SILENT_S
from fdstore.errors import FDStoreError
from fdstore.model.lifecycle import ENDED
from fdstore.store.views.health_rule import level_of, summary
from fdstore.store.views.live import LiveSnapshot
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_count, format_number

if TYPE_CHECKING:
    from fdstore.cli.session import CliSession
    from fdstore.client import Store

MAX_ROWS = 1000
"""Rows of a table. Longer tables take seconds to sort."""

COLOURS = {"good": "green", "busy": "yellow", "bad": "red", "faint": "dim"}


MARGIN = 4
"""The columns of a screen that a table leaves free: around its cells, and for its scroll bar."""

_OF_TABLES = {"view", "next_view", "sort", "tree", "filter", "ended", "descriptors", "kill", "clear_filter"}


class TopApp(App[None]):
    """The screen of `fdstore top`."""

    TITLE = "fdstore top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: auto; max-height: 5; padding: 0 1; background: $primary-background; }
    #views { height: 1; padding: 0 1; color: $text-muted; }
    #rows { height: 1fr; }
    #whole { height: auto; max-height: 6; padding: 0 1; color: $text-muted; display: none; }
    #empty { height: 1fr; padding: 1 2; color: $text-muted; display: none; }
    #filter { display: none; height: 1; border: none; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *[Binding(f"{n}", f"view('{name}')", name.title(), show=False) for n, name in enumerate(VIEWS, 1)],
        Binding("tab", "next_view", "View", priority=True),
        Binding("s", "sort", "Sort"),
        Binding("t", "tree", "Sort as trees", show=False),
        Binding("slash", "filter", "Filter"),
        Binding("e", "ended", "Ended"),
        Binding("d", "descriptors", "Texts"),
        Binding("k", "kill", "Kill"),
        Binding("q", "quit", "Quit"),
        Binding("question_mark", "help", "Help"),
        Binding("r", "refresh_now", "Refresh", show=False),
        Binding("escape", "clear_filter", "Clear the filter", show=False),
    ]

    def __init__(
        self, store: Store, session: CliSession, *, ended: bool, order: str, words: str, every_s: float
    ) -> None:
        super().__init__(ansi_color=False)
        self.store = store
        self.snapshot: LiveSnapshot | None = None
        self.view = VIEWS[0]
        self.order = order
        self.words = words
        self.ended = ended
        self._session = session
        self._every_s = every_s
        self._asked_at: float | None = None
        self._problem = ""
        self._shown: list[TopRow] = []
        self._layout: dict[int, int] = {}
        """The columns that are shown, by their position in the view, with their widths."""
        self._more = 0

    def compose(self) -> ComposeResult:
        yield Static("", id="head", markup=False)
        yield Static("", id="views", markup=False)
        yield Rows(id="rows", cursor_type="row", zebra_stripes=True, cell_padding=1)
        yield Static("", id="empty", markup=False)
        yield Static("", id="whole", markup=False)
        yield Input(
            self.words, placeholder="words that a row must have; Enter keeps, Esc clears", id="filter"
        )
        yield Footer()

    async def on_mount(self) -> None:
        self.query_one(DataTable).focus()
        self.set_interval(self._every_s, self.action_refresh_now)
        self.set_interval(1.0, self._tell_silence)
        await self.action_refresh_now()

    async def action_refresh_now(self) -> None:
        """Read the store again, unless a request is still under way or another screen is above."""
        if self._asked_at is not None or (self.snapshot is not None and len(self.screen_stack) > 1):
            return
        self._asked_at = time.monotonic()
        try:
            operation = live_explained(self.store.prefix, ended=self.ended)
            self.snapshot = await asyncio.to_thread(self.store.run, operation)
            self._problem = ""
        except FDStoreError as error:
            self._problem = f"{error.type}: {error}"
        finally:
            self._asked_at = None
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of the tables are those of the first screen alone."""
        return len(self.screen_stack) == 1 or action not in _OF_TABLES

    def _tell_silence(self) -> None:
        if self._asked_at is not None and time.monotonic() - self._asked_at > SILENT_S:
            self._problem = "Redis does not answer; this is what it said last"
            self._show()

    def _lay_out(self, rows: list[TopRow]) -> None:
        """Fit the columns of the view to the screen; where that changes them, begin with an empty table."""
        declared, table = TABLES[self.view].in_one_line(), self.query_one("#rows", DataTable)
        cells = [[show_controls(each, keep="") for each in row.cells] for row in rows]
        layout = fit(declared, cells, self.size.width - MARGIN)
        if layout == self._layout:
            return
        self._layout = layout
        table.clear(columns=True)
        self._shown = []
        for i, column_width in layout.items():
            column = declared.columns[i]
            head = cell(shorten(column.name, column_width), right=column.right)
            table.add_column(head, key=column.name, width=column_width)

    def on_resize(self) -> None:
        self._show()

    def _show(self) -> None:
        """Show the snapshot: change cells where they differ, and keep the cursor on its row."""
        if not self.is_running:
            return  # it ended while the store was asked
        if self.snapshot is None:
            self._show_head()
            return
        rows = rows_of(self.view, self.snapshot, order=self.order, words=self.words)
        self._more = len(rows[MAX_ROWS:])
        rows = rows[:MAX_ROWS]
        table = self.query_one("#rows", DataTable)
        selected, row_number = self.selected, table.cursor_row
        self._lay_out(rows)
        if [row.key for row in rows] == [row.key for row in self._shown]:
            for before, row in zip(self._shown, rows, strict=True):
                for i in self._layout:
                    if before.cells[i] != row.cells[i]:
                        table.update_cell(row.key, TABLES[self.view].names[i], self._cell(row, i))
        else:
            table.clear()
            for row in rows:
                table.add_row(*(self._cell(row, i) for i in self._layout), key=row.key)
            keys = [row.key for row in rows]
            table.move_cursor(row=keys.index(selected) if selected in keys else min(row_number, len(keys)))
        self._shown = rows
        empty = self.query_one("#empty", Static)
        table.display, empty.display = bool(rows), not rows
        if not rows:
            empty.update(Text(self._why_empty()))
        self._show_whole()
        self._show_head()

    def _cell(self, row: TopRow, i: int) -> Text:
        column, text = TABLES[self.view].columns[i], show_controls(row.cells[i], keep="")
        cut = shorten_inside if column.spill == "before" else shorten
        style = COLOURS.get(STATE_STYLES.get(text, ""), "") if column.name == "STATE" else ""
        return cell(cut(text, self._layout[i]), right=column.right, style=style)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if event.data_table.id == "rows":
            self._show_whole()

    def _show_whole(self) -> None:
        """Show what is cut or left out of the row under the cursor."""
        row = next((each for each in self._shown if each.key == self.selected), None)
        hidden = []
        for i, name in enumerate(TABLES[self.view].names if row else ()):
            text = show_controls(row.cells[i], keep="") if row else ""
            if text not in ("", "-") and width(text) > self._layout.get(i, 0):
                hidden.append(f"{name.lower()}: {text}")
        whole = self.query_one("#whole", Static)
        whole.display = bool(hidden)
        whole.update(Text("\n".join(hidden)))

    def _why_empty(self) -> str:
        if self.words:
            return f"No row has {show_controls(self.words, keep='')!r}. Esc clears the filter."
        if self.view == "processes" and not self.ended:
            return "No process is live. e shows those that have ended."
        return f"There are no {self.view} now."

    def _show_head(self) -> None:
        head = headline(self.snapshot) if self.snapshot else f"asking {self.store.where}"
        clock = "" if self.snapshot is None else time.strftime("%H:%M:%SZ  ", time.gmtime(self.snapshot.now))
        line = Text(clock + show_controls(head, keep=""))
        health = self.snapshot.health if self.snapshot else ()
        if (level := level_of(health)) != "ok":
            style = "bold red" if level == "problem" else "yellow"
            line.append("\n" + show_controls(summary(health), keep=""), style=style)
        if self.snapshot and self.snapshot.asking:
            line.append("\n" + show_controls(asking_line(self.snapshot), keep=""), style="yellow")
        if self._problem:
            line = Text(show_controls(self._problem, keep=""), style="bold red")
        self.query_one("#head", Static).update(line)
        tabs = Text()
        for number, name in enumerate(VIEWS, 1):
            tabs.append(f" {number} {name} ", style="reverse bold" if name == self.view else "")
            tabs.append(" ")
        more = [f"sorted by {self.order}"] if self.view == "processes" else []
        more += ["ended ones too"] if self.ended else []
        more += [f"{format_number(self._more)} rows more"] if self._more else []
        more += [f"filter: {show_controls(self.words, keep='')}"] if self.words else []
        tabs.append("  " + ", ".join(more))
        self.query_one("#views", Static).update(tabs)

    @property
    def selected(self) -> str | None:
        """The key of the row under the cursor."""
        row = self.query_one("#rows", DataTable).cursor_row
        return self._shown[row].key if 0 <= row < len(self._shown) else None

    @property
    def selected_process(self) -> str | None:
        """The process that the row under the cursor is about."""
        key = self.selected
        if key is None or self.snapshot is None:
            return None
        match self.view:
            case "streams":
                return key.partition("/")[0]
            case "workers":
                runs = next((each.runs for each in self.snapshot.workers if each.name == key), ())
                return runs[0] if runs else None
        return key

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if event.data_table.id != "rows":
            return
        process = self.selected_process
        if self.view == "streams" and self.selected and self.snapshot:
            stream = next(each for each in self.snapshot.streams if each.content == self.selected)
            self.push_screen(ContentScreen(self.store, stream.process, stream.fd, follow=True))
        elif process:
            self.push_screen(LogScreen(self.store, process))

    def action_descriptors(self) -> None:
        if process := self.selected_process:
            self.push_screen(DescriptorsScreen(self.store, process))

    def action_view(self, name: str) -> None:
        self.view = name
        self._layout = {}
        self._show()

    def action_next_view(self) -> None:
        if len(self.screen_stack) == 1:
            self.action_view(VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)])

    def action_sort(self) -> None:
        names = list(ORDERS)
        self.order = names[(names.index(self.order) + 1) % len(names)]
        self._show()

    def action_help(self) -> None:
        """Show all keys of the screen."""
        self.push_screen(HelpScreen(self.screen))

    def action_tree(self) -> None:
        self.order = "tree"
        self._show()

    async def action_ended(self) -> None:
        self.ended = not self.ended
        await self.action_refresh_now()

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.words = event.value
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.input.display = False
        self.query_one("#rows", DataTable).focus()

    def action_clear_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.query_one("#rows", DataTable).focus()

    def action_kill(self) -> None:
        if self.view in ("processes", "trees") and (process := self.selected_process):
            self.ask_to_kill(process)

    def on_log_screen_kill_asked(self, asked: LogScreen.KillAsked) -> None:
        self.ask_to_kill(asked.process)

    def ask_to_kill(self, process: str) -> None:
        """Cancel a process and its descendants after a question."""
        members = self.snapshot.processes if self.snapshot else ()
        if any(m.id == process and m.state in ENDED for m in members):
            self.notify(f"{process} has ended", markup=False)
            return
        below = [m for m in members if m.id.startswith(f"{process}.") and m.state not in ENDED]
        also = f" and its {format_count(len(below), 'live descendant')}" if below else ""

        async def kill(answer: Any) -> None:
            if answer:
                await self._kill(process)

        self.push_screen(ConfirmScreen(f"Cancel {process}{also}?"), kill)

    async def _kill(self, process: str) -> None:
        try:
            done = await asyncio.to_thread(self._cancel, process)
        except FDStoreError as error:
            said = f"{error.type}: {error}"
        else:
            said = f"cancelled {', '.join(done)}" if done else f"{process} had already ended"
        self.notify(show_controls(said, keep=""), markup=False)
        await self.action_refresh_now()

    def _cancel(self, process: str) -> tuple[str, ...]:
        from fdstore.cli.control import cancel_and_wake

        with self._session.store(use="remove") as store:  # the one that looks cannot
            return cancel_and_wake(store, process).cancelled


class ConfirmScreen(ModalScreen[bool]):
    """A question that y answers with yes; any other key listed, with no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q,enter", "answer(False)", "No"),
    ]
    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; }
    ConfirmScreen > Vertical { width: auto; max-width: 80%; height: auto; padding: 1 3; border: round $error;
        background: $surface; }
    ConfirmScreen Label { width: auto; max-width: 100%; }
    ConfirmScreen #keys { color: $text-muted; margin-top: 1; }
    """

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = show_controls(question, keep="\n")

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._question, markup=False)
            yield Label("y: yes    n: no", markup=False, id="keys")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
