"""The verb log: the conversation of a process as a person reads it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.durations import DURATION
from fdstore.cli.session import CliSession, verb
from fdstore.errors import DamagedRecord, NewerFormat, NotFound

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.inspector.reading.conversation import ConversationPage
    from fdstore.inspector.reading.entries import ConversationEntry
    from fdstore.inspector.reading.pending import ProcessWait

PAGE_RECORDS = 100
FULL_CHARS = 10_000_000

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 1.0
"""Between looks at a conversation that is followed: the longer, the longer nothing has happened. Its end is
noticed at once."""

PENDING_S, QUIET_S = 3.0, 10.0
"""The age at which a wait is reported while it lasts; and that of a call of the model or a tool that nothing
delays."""


@verb
@click.argument("process", metavar="PROC")
@click.option("-f", "--follow", is_flag=True, help="Follow the conversation until the process ends.")
@click.option("-n", "--last", type=click.IntRange(1), metavar="N", help="Only the last N entries.")
@click.option(
    "--since", "since_s", type=DURATION, metavar="TIME", help="Only the last TIME: 90s, 30m, 12h, 7d."
)
@click.option("--asks", is_flag=True, help="Only what its programs asked a model, and the answers.")
@click.option("--full", is_flag=True, help="Print texts whole; by default long ones are cut.")
def log(
    session: CliSession,
    process: str,
    follow: bool,
    last: int | None,
    since_s: float | None,
    asks: bool,
    full: bool,
) -> None:
    """Print the conversation of a process: prompts, answers, tool calls, results, workers, retries.

    Times are UTC, by the clock of Redis. A result that is stored is shown as its descriptor: `fdstore read`
    prints it. That of an agent's tree that has ended begins with the outcome: task, answer, failures by
    reason. The last lines say what the process waits for, or how it ended. With --json each line is one
    entry; a last document `pending` says what it waits for.

    With -f it goes on with what is added. `fdstore attach` shows an agent's progress in short and prints its
    answer at the end; `fdstore resume` runs an agent on that no worker continues.

    \b
    fdstore log triage
    fdstore log triage.1 -f -n 20
    fdstore log triage --since 10m --json
    fdstore log triage --asks --full
    """
    from fdstore.inspector.reading.conversation import position_since
    from fdstore.store.clock import redis_now

    if asks and follow:
        raise click.UsageError("--asks and --follow exclude each other")
    with session.store(use="look") as store:
        start, oldest = 0 if last is None else -last, 0.0
        if since_s is not None:
            oldest = store.run(redis_now()) - since_s
            if last is None:
                start = store.run(position_since(store.prefix, process, oldest))
        printer = _Printer(session, full=full)
        if follow:
            output.end_with_reader()
        if asks:
            _print_asks(store, printer, process, last, oldest, full=full)
            return
        if not (session.as_json or follow or last or since_s):
            _print_outcome(store, process)
        newest: deque[ConversationEntry] | None = None if last is None else deque(maxlen=last)
        for page in _pages(store, process, start, follow=follow, full=full):
            entries = [each for each in page.entries if each.at is None or each.at >= oldest]
            if newest is not None:
                newest.extend(entries)
                if not page.is_last:
                    continue
                entries, newest = list(newest), None  # what follows is new
            printer.print(page, entries)
        printer.finish()


def _print_outcome(store: Store, process: str) -> None:
    """Print what came of the run of an agent, if it is over and `process` is its first."""
    from fdstore.cli.log_lines import outcome_lines
    from fdstore.inspector.reading.outcome import outcome_of
    from fdstore.inspector.web.whole_tree import whole_tree
    from fdstore.model.lifecycle import ENDED

    if "." in process:
        return
    try:
        whole = store.run(whole_tree(store.prefix, process))
    except (NotFound, NewerFormat, DamagedRecord):
        return  # the conversation says so
    run = whole.run
    if run is None or run.state not in ENDED:
        return
    found = store.run(outcome_of(store.prefix, run, whole.processes, run.ended_at or 0.0))
    for line in outcome_lines(found, columns=output.columns(), coloured=output.use_colours()):
        output.print_painted(line)


def _print_asks(
    store: Store, printer: _Printer, process: str, last: int | None, oldest: float, *, full: bool
) -> None:
    """Print the asks of a process, by call and number."""
    from fdstore.inspector.reading.ask_entries import ASKS_AT_ONCE, read_entries
    from fdstore.inspector.reading.build_entries import MAX_TEXT_CHARS
    from fdstore.store.processes.asks import list_asks
    from fdstore.store.processes.process_records import record

    store.run(record(store.prefix, process))  # or else it does not exist
    which = store.run(list_asks(store.prefix, process))[-(last or 0) :]
    for start in range(0, len(which), ASKS_AT_ONCE):
        some, chars = which[start : start + ASKS_AT_ONCE], FULL_CHARS if full else MAX_TEXT_CHARS
        for entry in store.run(read_entries(store.prefix, process, some, chars)):
            if entry.at is None or entry.at >= oldest:
                printer.print_entry(entry)
    if not which:
        output.say(f"fdstore: the programs of {process} have asked a model nothing")


def _pages(store: Store, process: str, start: int, *, follow: bool, full: bool) -> Iterator[ConversationPage]:
    """Yield the pages of a conversation; with `follow` until its end."""
    from fdstore.inspector.reading.build_entries import MAX_TEXT_CHARS
    from fdstore.inspector.reading.conversation import MAX_RECORDS, conversation
    from fdstore.store.processes.waiting import wait_until_ended

    pause_s, losses = SHORTEST_PAUSE_S, 0
    chars = FULL_CHARS if full else MAX_TEXT_CHARS
    while True:
        count = PAGE_RECORDS if start >= 0 else MAX_RECORDS
        page = store.run(
            conversation(store.prefix, process, start, count, max_chars=chars, after_loss=losses)
        )
        yield page
        if page.is_complete or (page.is_last and not follow):
            return
        if page.is_last:
            pause_s = SHORTEST_PAUSE_S if page.entries else min(2 * pause_s, LONGEST_PAUSE_S)
            store.run(wait_until_ended(store.prefix, [process], pause_s))
        start, losses = page.next, page.process.losses


class _Printer:
    """Prints entries, and what the process waits for."""

    def __init__(self, session: CliSession, *, full: bool) -> None:
        from fdstore.cli.log_lines import LogLines

        self._as_json = session.as_json
        self._page: ConversationPage | None = None
        self._pending_said = ""
        self._lines = LogLines(full=full)

    def print(self, page: ConversationPage, entries: Iterable[ConversationEntry]) -> None:
        """Print entries of a page, and what is pending if it has lasted."""
        self._page = page
        for entry in entries:
            self._pending_said = ""
            self.print_entry(entry)
            if entry.kind == "end" and not self._as_json:
                self._print_totals(page)
        pending = page.pending
        if pending is not None and pending.since is not None:
            is_usual = pending.kind in ("model", "tool", "commands") and not pending.trouble
            patience_s = QUIET_S if is_usual and not pending.is_overdue else PENDING_S
            if page.now - pending.since >= patience_s:
                self._print_pending(page, pending)

    def print_entry(self, entry: ConversationEntry) -> None:
        """Print one entry."""
        if self._as_json:
            output.document(entry)
            return
        for line in self._lines.of(entry, columns=output.columns(), coloured=output.use_colours()):
            output.print_painted(line)

    def finish(self) -> None:
        """Print what the process waits for, or that it has no conversation."""
        page = self._page
        if page is None:
            return
        if page.pending is not None:
            self._print_pending(page, page.pending)
        elif not page.length and page.process.state == "open":
            output.say(
                f"fdstore: {page.process.id} is run by a client program: it has no conversation; "
                f"`fdstore ls {page.process.id}` lists what it holds"
            )

    def _print_pending(self, page: ConversationPage, pending: ProcessWait) -> None:
        from fdstore.cli.log_lines import pending_line

        if str(pending) == self._pending_said:
            return
        self._pending_said = str(pending)
        if self._as_json:
            output.document({"pending": pending})
        else:
            output.print_painted(pending_line(pending, page.now, coloured=output.use_colours()))

    def _print_totals(self, page: ConversationPage) -> None:
        from fdstore.cli.log_lines import total_line

        if text := total_line(page.process, page.codes):
            output.print_painted(text)
