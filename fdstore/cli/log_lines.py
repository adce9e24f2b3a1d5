"""Format entries of a conversation as lines for a terminal: pure functions.

    2026-11-22 16:51:43  answer   I look at the end of the log first.
                                  2.5 s, 930 in, 30 out
    2026-11-22 16:51:43  call     read_fd(fd="fd:1", start=2549)
    2026-11-22 16:51:43  result   fd:1, page 2549 of 2549, lines 99961-100000  (read_fd, 40 ms)

Texts are of models, tools and strangers: every control character is escaped here, whatever prints the lines.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from fdstore.cli.colours import paint
from fdstore.cli.tables import GAP
from fdstore.inspector.reading.describe_result import describe_result
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.pending import ProcessWait
from fdstore.model.records import ProcessRecord
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_costs, format_count, format_tokens, precise_duration

NO_TIME = " " * 19
MAX_ARGUMENT_CHARS = 200

LABELS: dict[str, tuple[str, str]] = {
    "task": ("task", "heading"),
    "commands": ("pipeline", "heading"),
    "system": ("system", "faint"),
    "prompt": ("prompt", "heading"),
    "attempt": ("worker", "faint"),
    "outage": ("outage", "bad"),
    "retry": ("retry", "busy"),
    "thinking": ("thinks", "faint"),
    "answer": ("answer", "good"),
    "call": ("call", "mark"),
    "result": ("result", "mark"),
    "ask": ("ask", "mark"),
    "asks": ("asks", "mark"),
    "note": ("note", "busy"),
    "cleared": ("cleared", "faint"),
    "block": ("block", "faint"),
    "unknown": ("unknown", "busy"),
    "unreadable": ("damaged", "bad"),
    "end": ("end", "heading"),
}
"""Kind of an entry -> its label and its style."""

MAX_LINES = {
    "ask": 4,
    "system": 2,
    "prompt": 4,
    "result": 4,
    "thinking": 4,
    "task": 6,
    "cleared": 4,
    "note": 4,
}
"""The lines that are shown of a text of some kinds; of others `DEFAULT_LINES`."""

DEFAULT_LINES = 40


def format_moment(at_s: float | None) -> str:
    """Format a time in UTC, to the second.

    >>> format_moment(1_795_365_840.5)
    '2026-11-22 16:44:00'
    """
    if at_s is None:
        return NO_TIME
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def format_call(tool: str, arguments: Any, max_chars: int = MAX_ARGUMENT_CHARS) -> str:
    """Format a tool call; each argument is cut to `max_chars`.

    >>> format_call("read_fd", {"fd": "fd:1", "start": 2})
    'read_fd(fd="fd:1", start=2)'
    """
    if not isinstance(arguments, dict):
        return f"{tool}({_argument(arguments, max_chars)})"
    return (
        f"{tool}({', '.join(f'{name}={_argument(value, max_chars)}' for name, value in arguments.items())})"
    )


def _argument(value: Any, max_chars: int) -> str:
    text = msgspec.json.encode(value).decode("utf-8")
    return text if len(text) <= max_chars else f"{text[:max_chars]}..."


def entry_lines(
    entry: ConversationEntry, *, columns: int | None = None, coloured: bool = False, full: bool = False
) -> Iterator[str]:
    """Yield the lines of an entry. `full` shows all its text; `columns` wraps it; `coloured` adds colours."""
    label, style = LABELS[entry.kind]
    if entry.kind in ("result", "ask") and entry.is_error:
        label, style = "failed" if entry.kind == "ask" else "error", "bad"
    if entry.kind == "attempt" and entry.before in ("loss", "return"):
        label, style = "takeover", "bad" if entry.before == "loss" else "busy"
    if entry.kind == "end" and entry.state == "failed":
        style = "bad"
    time, name = format_moment(entry.at), f"{label:<8}"
    margin = f"{time}{GAP}{name}{GAP}"
    painted = f"{paint(time, 'faint')}{GAP}{paint(name, style)}{GAP}" if coloured else margin
    head, body = _said(entry)
    details = _details(entry)
    room = None if columns is None else max(20, columns - len(margin))
    lines = list(_wrapped(head, room)) if head else []
    below = _shown(entry, body, room, full=full)
    if details:
        lines, below = (
            (_with_details(lines, details, room, coloured), below)
            if head
            else (lines, _with_details(below, details, room, coloured))
        )
    for number, line in enumerate([*lines, *below] or [""]):
        yield ((painted if number == 0 else " " * len(margin)) + line).rstrip()


def _with_details(lines: list[str], details: str, room: int | None, coloured: bool) -> list[str]:
    """Return the lines with details after the last one, or below it if that is long."""
    shown = paint(details, "faint") if coloured else details
    if lines and (room is None or len(lines[-1]) + len(GAP) + len(details) <= room):
        return [*lines[:-1], f"{lines[-1]}{GAP}{shown}"]
    return [*lines, shown]


def _said(entry: ConversationEntry) -> tuple[str, str]:
    """Return what an entry says in fdstore's own words, and the text of others below it."""
    match entry.kind:
        case "call" if entry.tool == "run_python" and (code := _code(entry.arguments)):
            return "run_python", code
        case "call":
            return format_call(entry.tool, entry.arguments), ""
        case "attempt":
            where = f"attempt {entry.number} on {entry.worker or '?'}"
            lost = f" (loss {entry.losses})" if entry.before == "loss" else ""
            return f"{where}: {entry.text}{lost}" if entry.text else where, ""
        case "retry":
            return f"try {entry.number}: {entry.text}; asked again after {entry.duration_s or 0:.1f} s", ""
        case "outage":
            return f"{entry.text} for {precise_duration(entry.duration_s or 0)}", ""
        case "task" if entry.process:
            return f"a copy of {entry.process}", entry.text
        case "ask":
            return f"{entry.number}: {_question(entry.arguments)}", entry.text
        case "asks":
            return f"{entry.text}; `fdstore log --asks` shows each", ""
        case "unknown":
            return f"a record of a newer kind: {entry.text}", ""
        case "block":
            return f"[{entry.text}]", ""
        case "cleared":
            return (
                f"{format_count(len(entry.calls), 'old result')} replaced by one line each",
                entry.text,
            )
        case "end":
            code = "" if entry.exit_code is None else f" with code {entry.exit_code}"
            return f"{entry.state}{code}", entry.text
        case "result" if said := describe_result(entry.facts):
            if entry.facts.error is not None:
                return said, entry.facts.error.message
            return said, entry.text if entry.is_error and entry.facts.processes else ""
    return "", entry.text


def _code(arguments: Any) -> str:
    """Return the program that a call runs; "" if it names none."""
    code = arguments.get("code") if isinstance(arguments, dict) else None
    return code.strip("\n") if isinstance(code, str) else ""


def _question(arguments: Any) -> str:
    """Return the question of an ask, and its texts."""
    found = arguments if isinstance(arguments, dict) else {}
    texts = ", ".join(map(str, found.get("parts") or ()))
    return f"{' '.join(str(found.get('question', '')).split())}{f' ({texts})' if texts else ''}"


def _details(entry: ConversationEntry) -> str:
    """Return durations, tokens and marks of an entry."""
    parts = []
    if entry.kind == "result":
        parts.append(entry.tool)
    if entry.kind in ("result", "answer", "ask") and entry.duration_s is not None:
        parts.append(precise_duration(entry.duration_s))
    if entry.usage is not None:
        parts.append(format_tokens(entry.usage))
    if entry.kind == "answer" and entry.stop_reason not in ("tool_use", "end_turn", None):
        parts.append(f"stop reason {entry.stop_reason}")
    if entry.pending:
        parts.append("no answer yet" if entry.kind == "ask" else "no result yet")
    if entry.cleared:
        parts.append("cleared later")
    return show_controls(f"({', '.join(filter(None, parts))})", keep="") if any(parts) else ""


def _shown(entry: ConversationEntry, text: str, room: int | None, *, full: bool) -> list[str]:
    """Return the lines of a text, at most as many as are shown of its kind, and how much is left out."""
    if not text.strip():
        return []
    most = None if full else MAX_LINES.get(entry.kind, DEFAULT_LINES)
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
        return [*kept, f"... ({entry.chars:,} characters in all)"]
    if entry.is_cut or taken < len(text.rstrip("\n")):
        lines.append(f"... ({entry.chars:,} characters in all)")
    return lines


def _wrapped(text: str, room: int | None) -> Iterator[str]:
    shown = show_controls(text, keep="\n").replace("\n", " ")
    if room is None or len(shown) <= room:
        yield shown
        return
    indent = shown[: len(shown) - len(shown.lstrip(" "))][: room // 2]
    yield from textwrap.wrap(
        shown, room, drop_whitespace=True, break_on_hyphens=False, subsequent_indent=indent, tabsize=4
    ) or [""]


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
