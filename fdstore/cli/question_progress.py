"""The progress of a question, one line on stderr, in place on a terminal, elsewhere now and then; and its
answer.

What is shown comes from the store alone: the counts of the questions that the agent's code has asked, and the
tokens of the agent and of the lanes that ask for it. So it does not matter on which machines they run.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from fdstore.agents.runtime.periodic import run_periodically
from fdstore.cli import output
from fdstore.cli.processes import usage_fields
from fdstore.cli.progress import draw
from fdstore.cli.watch import Unclaimed
from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.model.ends import in_words
from fdstore.model.records import ProcessRecord
from fdstore.setup.url_options import has_password
from fdstore.store.views.shown_processes import fold_lanes
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_costs, format_count, format_number, precise_duration

if TYPE_CHECKING:
    from fdstore.cli.session import CliSession
    from fdstore.store.processes.process_records import ProcessAnswer

EVERY_S = 0.2
FIRST_LINE_S = 5.0
LAST_PAUSE_S = 60.0


class AskProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a question. `done` of `asked` questions of its code are answered, in all its calls;
    `failed` of these with an error."""

    asked: int = 0
    done: int = 0
    failed: int = 0
    tokens: int = 0
    cost: str = ""
    seconds: float = 0.0


def format_line(progress: AskProgress) -> str:
    """Format the progress as a line.

    >>> format_line(AskProgress(asked=40, done=12, tokens=45_200, cost="0.03 USD", seconds=12.3))
    'asks 12 of 40, 45,200 tokens, 0.03 USD, 12 s'
    >>> format_line(AskProgress(seconds=2))
    '0 tokens, 2 s'
    """
    parts = []
    if progress.asked:
        failed = f" ({progress.failed} failed)" if progress.failed else ""
        parts.append(f"asks {progress.done} of {progress.asked}{failed}")
    parts.append(f"{format_number(progress.tokens)} tokens")
    if progress.cost:
        parts.append(progress.cost)
    parts.append(f"{progress.seconds:.0f} s")
    return ", ".join(parts)


def format_end(progress: AskProgress) -> str:
    """Format what a question has taken.

    >>> format_end(AskProgress(asked=40, done=40, tokens=45_200, seconds=12.3))
    '45,200 tokens, 40 asks, 12.3 s'
    """
    parts = [f"{format_number(progress.tokens)} tokens", progress.cost]
    if progress.asked:
        parts.append(format_count(progress.asked, "ask"))
        if progress.failed:
            parts.append(f"{progress.failed} failed")
    parts.append(precise_duration(progress.seconds))
    return ", ".join(part for part in parts if part)


class Sparse:
    """Decides when a line is due where lines stay: after 5 seconds, and then after ever longer pauses of up
    to a minute.

    >>> sparse = Sparse()
    >>> [second for second in range(100) if sparse.is_due(second)]
    [5, 15, 35, 75]
    """

    def __init__(self) -> None:
        self._at, self._pause = FIRST_LINE_S, FIRST_LINE_S

    def is_due(self, seconds: float) -> bool:
        """Return whether a line is due after so many seconds, and count it."""
        if seconds < self._at:
            return False
        self._pause = min(2 * self._pause, LAST_PAUSE_S)
        self._at = seconds + self._pause
        return True


class QuestionProgress:
    """Follows the agent of a question, and shows how far it is."""

    def __init__(self, store: Store, agent: str, *, quiet: bool) -> None:
        self._store = store
        self._agent = agent
        self._quiet = quiet
        self._began = time.monotonic()
        self._members: list[ProcessRecord] = []
        self._troubles: dict[str, str] = {}
        self._unclaimed = Unclaimed(store)
        self._sparse = Sparse()

    @property
    def now(self) -> AskProgress:
        """The progress as of the last look."""
        counts = [each.asks for each in self._members if each.asks is not None]
        return AskProgress(
            asked=sum(each.total for each in counts),
            done=sum(each.done for each in counts),
            failed=sum(each.failed for each in counts),
            tokens=sum(each.tokens for each in self._members),
            cost=format_costs(self._members),
            seconds=time.monotonic() - self._began,
        )

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the progress while the block runs, and look a last time after it."""
        is_drawn = output.stderr_is_terminal() and not self._quiet
        try:
            with run_periodically(EVERY_S, self._show, "progress of a question"):
                yield
        finally:
            if is_drawn:
                draw("")
        self._look()

    def _show(self) -> bool:
        with suppress(FDStoreError):  # the agent itself reports them
            news = self._look()
            if self._quiet:
                return True
            is_terminal = output.stderr_is_terminal()
            for line in news:
                if is_terminal:
                    draw("")
                output.say(f"fdstore: {line}")
            progress = self.now
            if is_terminal:
                draw(format_line(progress))
            elif self._sparse.is_due(progress.seconds):
                output.say(f"fdstore: {format_line(progress)}")
        return True

    def _look(self) -> Sequence[str]:
        """Read what there is to show. Return lines about what delays it."""
        tree, below = self._agent.partition(".")[0], f"{self._agent}."
        members = [
            each
            for each in self._store.tree(tree).members
            if each.id == self._agent or each.id.startswith(below)
        ]
        news = [line for each in members if (line := self._delay_of(each))]
        self._members = self._store.run(fold_lanes(self._store.prefix, members))
        return news

    def _delay_of(self, member: ProcessRecord) -> str:
        """Return what delays a process, if that is new."""
        before, now = self._troubles.get(member.id, ""), member.trouble or ""
        self._troubles[member.id] = now
        if now and now != before:
            return f"{member.id}: {show_controls(now, keep='')}"
        return self._unclaimed.reason(member)


def report_answer(
    session: CliSession,
    store: Store,
    holder: str,
    ended: ProcessAnswer,
    taken: AskProgress,
    *,
    quiet: bool,
    demo: bool,
) -> None:
    """Print the answer, and what it has taken."""
    record = ended.record
    if session.as_json:
        used = usage_fields(store.tree(record.id.partition(".")[0]))
        output.document({"process": record, "answer": ended.text, "texts": holder, "taken": taken, **used})
    else:
        if ended.text:
            output.line(ended.text)
        if record.reason:
            output.say(f"fdstore: {record.id} {record.state}: {in_words(record.reason)}")
    if taken.asked and taken.failed == taken.asked:
        output.say(
            f"fdstore: all asks of its programs failed ({taken.failed} of {taken.asked}), so the answer "
            f"rests on none; fdstore log {record.id} --asks has the errors"
        )
    if not session.as_json and not quiet:
        prefix = f" --prefix {shlex.quote(session.prefix)}" if session.prefix else ""
        url = f" --url {shlex.quote(session.url)}" if session.url and not has_password(session.url) else ""
        by_script = " --demo" if demo else ""
        more = f'fdstore ask{by_script} --continue {holder}{prefix}{url} "..."'
        output.say(f"fdstore: {format_end(taken)}; to ask more: {more}")
