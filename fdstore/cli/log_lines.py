"""Format entries of a conversation as lines for a terminal: pure functions.

    2026-11-22 16:51:43  answer   I look at the end of the log first.
                                  2.5 s, 930 in, 30 out
    2026-11-22 16:51:43  call     read_fd(fd="fd:1", start=2549)
    2026-11-22 16:51:43  result   fd:1, page 2549 of 2549, lines 99961-100000  (read_fd, 40 ms)

Texts are of models, tools and strangers: every control character is escaped here, whatever prints the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from fdstore.cli.colours import paint
from fdstore.cli.tables import GAP, width, wrap
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.narrate import DEFAULT_LINES, Line, narrate
from fdstore.inspector.reading.outcome import Outcome
from fdstore.inspector.reading.pending import ProcessWait
from fdstore.model.ends import in_words
from fdstore.model.records import ProcessRecord
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_costs, format_number, format_tokens, precise_duration

NO_TIME = " " * 19


def format_moment(at_s: float | None) -> str:
    """Format a time in UTC, to the second.

    >>> format_moment(1_795_365_840.5)
    '2026-11-22 16:44:00'
    """
    if at_s is None:
        return NO_TIME
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


LABEL_CHARS = 9


class LogLines:
    """The entries of one conversation as lines, one after the other. `full` shows their whole texts.

    The first prompt is left out if it is the task again.
    """

    def __init__(self, *, full: bool = False) -> None:
        self._full = full
        self._task = ""

    def of(
        self, entry: ConversationEntry, *, columns: int | None = None, coloured: bool = False
    ) -> Iterator[str]:
        """Return the lines of the next entry, none if it is left out."""
        if entry.kind == "task":
            self._task = entry.text
        if entry.kind == "prompt" and entry.text == self._task:
            return iter(())
        return entry_lines(entry, columns=columns, coloured=coloured, full=self._full)


def entry_lines(
    entry: ConversationEntry, *, columns: int | None = None, coloured: bool = False, full: bool = False
) -> Iterator[str]:
    """Yield the lines of an entry. `full` shows all its text; `columns` wraps it; `coloured` adds colours."""
    said = narrate(entry)
    time, name = format_moment(entry.at), f"{said.label:<8}"
    margin = f"{time}{GAP}{name}{GAP}"
    painted = f"{paint(time, 'faint')}{GAP}{paint(name, said.tone)}{GAP}" if coloured else margin
    room = None if columns is None else max(20, columns - len(margin))
    lines = list(_wrapped(said.head, room)) if said.head else []
    below = _shown(entry, said, room, full=full)
    if details := ", ".join(filter(None, said.details)):
        shown = show_controls(f"({details})", keep="")
        if said.head:
            lines = _with_details(lines, shown, room, coloured)
        else:
            below = _with_details(below, shown, room, coloured)
    for number, line in enumerate([*lines, *below] or [""]):
        yield ((painted if number == 0 else " " * len(margin)) + line).rstrip()


def _with_details(lines: list[str], details: str, room: int | None, coloured: bool) -> list[str]:
    """Return the lines with details after the last one, or below it if that is long."""
    shown = paint(details, "faint") if coloured else details
    if lines and (room is None or width(lines[-1]) + len(GAP) + width(details) <= room):
        return [*lines[:-1], f"{lines[-1]}{GAP}{shown}"]
    return [*lines, shown]


def _shown(entry: ConversationEntry, said: Line, room: int | None, *, full: bool) -> list[str]:
    """Return the lines of a text, at most as many as are shown of its kind, and how much is left out."""
    text = said.body
    if not text.strip():
        return []
    most = None if full else said.lines
    lines: list[str] = []
    taken = 0
    for part in text.rstrip("\n").split("\n"):
        if most is not None and most < DEFAULT_LINES and not part.strip():
            taken += len(part) + 1
            continue
        if most is not None and len(lines) >= most:
            break
        taken += len(part) + 1
        lines += _wrapped(part, room)
    if most is not None and len(lines) > most:
        kept = lines[:most]
        return [*kept, f"... ({format_number(entry.chars)} characters in all)"]
    if entry.is_cut or taken < len(text.rstrip("\n")):
        lines.append(f"... ({format_number(entry.chars)} characters in all)")
    return lines


def _wrapped(text: str, room: int | None) -> Iterator[str]:
    shown = show_controls(text, keep="\n").replace("\n", " ")
    if room is None or width(shown) <= room:
        yield shown
        return
    indent = shown[: len(shown) - len(shown.lstrip(" "))][: room // 2]
    yield from wrap(shown, room, indent=indent)


ANSWER_LINES = 12


def outcome_lines(found: Outcome, *, columns: int | None = None, coloured: bool = False) -> Iterator[str]:
    """Yield the lines of what came of a run, and an empty one."""
    room = None if columns is None else max(20, columns - LABEL_CHARS)

    def labelled(label: str, kind: str, text: str, lines: int = ANSWER_LINES) -> Iterator[str]:
        wrapped = [piece for line in text.split("\n") for piece in _wrapped(line, room)]
        shown = wrapped if len(wrapped) <= lines else [*wrapped[: lines - 1], "..."]
        for number, line in enumerate(shown):
            head = f"{'' if number else label:<{LABEL_CHARS}}"
            yield (paint(head, kind) if coloured and not number else head) + line

    if found.task:
        yield from labelled("task", "faint", found.task)
    if found.answer:
        yield from labelled("answer", "good", found.answer.strip("\n"))
    elif found.process.state != "exited":
        yield from labelled(found.process.state, "bad", in_words(found.process.reason))
    if found.failed_calls is not None:
        yield from labelled("exited", "bad", found.failed_calls.said)
        for each in found.failed_calls.failures:
            times = f"{each.count} x " if each.count > 1 else ""
            yield from labelled("failed", "bad", f"{times}{each.reason}", 3)
    for each in found.failures:
        if each.count > 1 or each.first != found.process.id:
            times = f"{each.count} x " if each.count > 1 else ""
            where = f" (first in {each.first})" if each.count > 1 else f" ({each.first})"
            yield from labelled("failed", "bad", f"{times}{each.reason}{where}", 3)
    if found.cut_call is not None:
        yield from labelled("not ended", "bad", narrate(found.cut_call).head, 3)
    for number, process in enumerate(found.codes):
        yield from labelled(
            "exited", "mark", f"{process.id} with code {process.exit_code}: {process.program}", 3
        )
        if said := "".join(found.errors[number : number + 1]):
            yield from labelled("", "bad", said, 3)
    if found.remedy:
        yield from labelled("to do", "mark", found.remedy)
    if text := total_line(found.process).strip():
        yield from labelled("took", "faint", text)
    yield ""


def pending_line(pending: ProcessWait, now: float, *, coloured: bool = False) -> str:
    """Return the line that says what a process waits for, and for how long."""
    since = "" if pending.since is None else f", for {precise_duration(max(0.0, now - pending.since))}"
    label = paint(f"{'now':<8}", "busy") if coloured else f"{'now':<8}"
    return f"{format_moment(now)}{GAP}{label}{GAP}{show_controls(str(pending), keep='')}{since}"


def total_line(process: ProcessRecord, codes: str = "") -> str:
    """Return the line below the end of a process: its time, its tokens, the exit codes of its commands."""
    parts = []
    if process.started_at is not None and process.ended_at is not None:
        parts.append(f"{precise_duration(max(0.0, process.ended_at - process.started_at))} in all")
    if process.tokens:
        parts.append(f"tokens: {format_tokens(process)}")
    if cost := format_costs([process]):
        parts.append(f"cost: {cost}")
    if codes:
        parts.append(f"exit codes {', '.join(codes.split(','))}")
    if process.losses:
        parts.append(f"{process.losses} lost")
    margin = " " * (len(NO_TIME) + 8 + 2 * len(GAP))
    return margin + show_controls(", ".join(parts), keep="") if parts else ""
