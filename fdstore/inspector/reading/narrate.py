"""What people see of the entries of a conversation, wherever they see them. Pure.

`narrate` makes one `Line` of an entry, the only place with the words of each kind of entry. Who shows entries
renders lines, so a new kind is shown everywhere when `narrate` knows it:

    fdstore log, the terminal inspector    2026-11-22 16:51:43  label     head  (details)
                                                                          body
    fdstore run, attach and demo             0.82s  triage.1            news
    a row of a page, and the comparison    title
    a page, an exported run                said
                                           the text of the entry
    the timeline, the bar of a row         span

Texts are of models, tools and strangers: whoever shows a line escapes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from fdstore.agents.loop.record_facts import Before
from fdstore.inspector.reading.describe_result import describe_people, describe_result
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.model.ends import in_words
from fdstore.model.records import TokenUsage
from fdstore.text.quantities import (
    format_count,
    format_number,
    format_size,
    format_tokens,
    precise_duration,
    short_number,
)

MAX_ARGUMENT_CHARS = 200
MAX_NEWS_CHARS = 90
MAX_NEWS_ARGUMENT_CHARS = 60

DEFAULT_LINES = 40
"""The lines of a text that the log shows; of a kind of which it shows fewer, blank ones are left out."""

SLOW_S = 1.0
"""News of a tool call that took longer tell its duration."""

Tone = Literal["heading", "good", "busy", "bad", "mark", "faint"]
"""How a label is coloured: `cli.colours`."""

TAKEOVERS: dict[Before, tuple[str, Tone]] = {"loss": ("takeover", "bad"), "return": ("takeover", "busy")}
"""The end of the attempt before -> the label of one that takes over."""

Form = (
    Literal["", "heading", "said", "none", "lost", "mono", "number", "tool", "took", "tokens", "pending"]
    | Literal["state", "process", "fds", "asks"]
)


class Marked(msgspec.Struct, frozen=True):
    """Words on a page, of which parts may be marked in another form. Of the form "process", "fds" or "asks"
    they are names that lead to what they name; "said" are words of others."""

    form: Form
    parts: tuple[str | Marked, ...]
    title: str = ""


class Span(msgspec.Struct, frozen=True):
    """The bar of an entry. On the timeline it has a `label` and began `took_s` before its record; None: it
    has no bar there."""

    kind: Literal["answer", "call", "retry"]
    label: str = ""
    took_s: float | None = None


class Line(msgspec.Struct, frozen=True):
    """What people see of an entry.

    label, tone    what it is, for terminals
    title          what a row of a page calls it; `is_tool`: that is the name of a tool
    head           what fdstore says of it; `body`: the text of others below, of which `lines` are shown
    details        durations, tokens and marks
    news           what is said of it when it happens; "" if that is nothing
    said           what a page says of it; None: its title, as a heading
    text_lines     the lines of its text that a page shows below at first; 0: it does not show the text.
                   `is_mono`: in a font of one width; `has_elements`: it has elements, as models see them
    is_error       whether it is an error by itself; of a call its result tells
    is_sent        whether its text is sent to a model
    took_s         how long it took until it was recorded; None if that is not known, or if it has none
    span           its bar
    """

    label: str
    tone: Tone
    title: str
    head: str = ""
    body: str = ""
    lines: int = DEFAULT_LINES
    details: tuple[str, ...] = ()
    news: str = ""
    said: Marked | None = None
    text_lines: int = 0
    is_tool: bool = False
    is_mono: bool = False
    has_elements: bool = False
    is_error: bool = False
    is_sent: bool = False
    took_s: float | None = None
    span: Span | None = None


def narrate(it: ConversationEntry) -> Line:
    """Return what people see of an entry.

    >>> line = narrate(ConversationEntry(position=3, kind="retry", number=2, text="all are busy"))
    >>> line.label, line.head, line.news
    ('retry', 'try 2: all are busy; asked again after 0.0 s', '  try 2: all are busy; asked again')
    """
    text = it.text
    match it.kind:
        case "task":
            head = f"a copy of {it.process}" if it.process else ""
            copied = _marked("none", "as a copy of ", _marked("process", it.process))
            said = _marked("heading", "Task", *_if(it.process, " ", copied))
            return Line("task", "heading", "Task", head, text, lines=6, said=said, text_lines=7)
        case "commands":
            news = f"runs {text[:MAX_NEWS_CHARS]}"
            return Line("pipeline", "heading", "Commands", body=text, news=news, text_lines=7, is_mono=True)
        case "system":
            return Line("system", "faint", "System prompt", "", text, lines=2, text_lines=3, is_sent=True)
        case "prompt":
            shown = Line("prompt", "heading", "Prompt", "", text, lines=4, text_lines=7)
            return msgspec.structs.replace(shown, has_elements=True, is_sent=True)
        case "attempt":
            return _attempt(it)
        case "loss":
            return _loss(it)
        case "outage":
            head = f"{text} for {precise_duration(it.duration_s or 0)}"
            news = f"  Redis did not answer its worker for {it.duration_s or 0:.0f} s"
            said = _marked("", f"Redis did not answer for {_took(it) or 'some time'}")
            return Line("outage", "bad", "Redis did not answer", head, news=news, said=said)
        case "retry":
            return _retry(it)
        case "thinking":
            return Line("thinks", "faint", "Thinking", body=text, lines=4, text_lines=3)
        case "answer":
            return _answer(it)
        case "call":
            return _call(it)
        case "result":
            return _result(it)
        case "ask":
            return _ask(it)
        case "asks":
            said = _marked("", _marked("asks", text))
            return Line("asks", "mark", "Asks", f"{text}; `fdstore log --asks` shows each", said=said)
        case "note":
            first_line, *_ = text.strip().split("\n", 1)
            news = f"  gets the note: {_beginning(first_line)}"
            said = _marked("heading", "Note of fdstore to the model")
            shown = Line("note", "busy", "Note to the model", "", text, lines=4, news=news, said=said)
            return msgspec.structs.replace(shown, text_lines=12, is_sent=True)
        case "cleared":
            return _cleared(it)
        case "undeferred":
            said = _marked("none", f"the server of the model refuses deferred tools: {text}")
            return Line("tools", "faint", "Tools not deferred", text, said=said)
        case "block":
            return Line(
                "block", "faint", "Block", f"[{text}]", said=_marked("none", f"a block of type {text}")
            )
        case "unknown":
            said = _marked("none", f"a record that a newer fdstore wrote ({text})")
            return Line("unknown", "busy", "Newer record", f"a record of a newer kind: {text}", said=said)
        case "unreadable":
            news = "  a record of its journal cannot be read"
            said = _marked("lost", f"This record cannot be read: {text}")
            return Line("damaged", "bad", "Damaged record", "", text, news=news, said=said, is_error=True)
        case "end":
            return _end(it)


def _attempt(it: ConversationEntry) -> Line:
    label, tone = TAKEOVERS.get(it.before, ("worker", "faint"))
    why = f": {it.text}" if it.text else ""
    lost = f" (loss {it.losses})" if why and it.before == "loss" else ""
    said = _marked(
        "",
        *("Attempt ", _marked("number", str(it.number))),
        *_if(it.worker, " on ", _marked("mono", it.worker)),
        why,
        *_if(it.losses, " ", _marked("lost", f"{format_count(it.losses, 'loss', 'losses')} so far")),
    )
    head = f"attempt {it.number} on {it.worker or '?'}{why}{lost}"
    news = f"continues as attempt {it.number}, on {it.worker}: {it.text}" if it.before in TAKEOVERS else ""
    return Line(label, tone, _numbered("Attempt", it), head, news=news, said=said)


def _loss(it: ConversationEntry) -> Line:
    where = f" on {it.worker}" if it.worker else ""
    head = f"loss {it.losses}: {it.text}; attempt {it.number}{where}"
    said = _marked(
        "",
        *(_marked("lost", f"Loss {it.losses}"), f": {it.text}; attempt ", _marked("number", str(it.number))),
        *_if(it.worker, " on ", _marked("mono", it.worker)),
    )
    return Line("lost", "bad", f"Loss {it.losses}", head, said=said, is_error=True)


def _retry(it: ConversationEntry) -> Line:
    failed = f"try {it.number}: {it.text}"
    pause = _if(it.duration_s, " ", _marked("none", f"asked again after {_took(it)}"))
    return Line(
        *("retry", "busy", _numbered("The model failed", it)),
        head=f"{failed}; asked again after {it.duration_s or 0:.1f} s",
        news=f"  {failed}; asked again",
        said=_marked("", f"The model failed, try {it.number}: ", _marked("said", it.text), *pause),
        is_error=True,
        span=Span("retry", "the model failed", 0.0),
    )


def _answer(it: ConversationEntry) -> Line:
    usage = it.usage or TokenUsage()
    stopped = it.stop_reason if it.stop_reason not in ("tool_use", "end_turn", None) else ""
    sent, received, cached = map(
        format_number, (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    )
    counts = f"{sent} tokens in, {received} out, {cached} of those read from the prompt cache"
    counts += "; an estimate, the model's server counts none" if it.is_estimated else ""
    tokens = _marked("tokens", _in_and_out(it) if usage.tokens else "", title=counts)
    name = _numbered("Answer", it)
    return Line(
        *("answer", "good", name),
        body=it.text,
        details=(_took(it), _tokens(it), f"stop reason {stopped}" if stopped else ""),
        news=f'says "{_beginning(" ".join(it.text.split()))}"' if it.text else "",
        said=_marked("heading", f"{name} ", _marked("took", _took(it)), tokens, _marked("lost", stopped)),
        text_lines=12 if it.text else 0,
        took_s=it.duration_s,
        span=Span("answer", name.lower(), it.duration_s or None),
    )


def _call(it: ConversationEntry) -> Line:
    given, pending, code = it.arguments, "no result yet" if it.pending else "", ""
    if it.tool == "run_python" and isinstance(given, dict) and isinstance(given.get("code"), str):
        code = given["code"].strip("\n")
    return Line(
        *("call", "mark", it.tool or "Call"),
        head=it.tool if code else _called(it, _as_json),
        body=code,
        details=(pending,),
        news=f"calls {_called(it, _as_repr)}" if isinstance(given, dict) else "",
        said=_marked("heading", _marked("tool", it.tool), *_if(pending, " ", _marked("pending", pending))),
        is_tool=True,
        span=Span("call"),
    )


def _result(it: ConversationEntry) -> Line:
    head, body, facts = describe_result(it.facts), it.text, it.facts
    if head and facts.error is not None:
        body = facts.error.message
    elif head and not (it.is_error and facts.processes):
        body = ""
    cleared = "cleared later" if it.cleared else ""
    source = f" from {it.tool}" if it.tool else ""
    is_slow = it.duration_s is not None and it.duration_s >= SLOW_S
    after = f" after {it.duration_s:.1f} s" if is_slow else ""
    how = "an error" if it.is_error else "a result"
    came = ": ".join(filter(None, (head, _beginning(_first_line(body)))))
    return Line(
        *(("error", "bad") if it.is_error else ("result", "mark")),
        it.tool or "Result",
        head,
        body,
        lines=4,
        details=(it.tool, _took(it), cleared, describe_people(facts)),
        news=f"  gets {how} of {format_size(it.chars)}{source}{after}{came and f': {came}'}",
        said=_marked(
            "heading",
            _marked("", "Error of " if it.is_error else "Result of ", _marked("tool", it.tool or "a call")),
            *(" ", _marked("took", _took(it)), " ", _marked("fds", *it.fds)),
            _marked("none", cleared, title="The model is sent one line instead from then on"),
            _marked("said", describe_people(facts)),
        ),
        text_lines=12,
        is_tool=True,
        is_mono=True,
        has_elements=True,
        is_error=it.is_error,
        is_sent=True,
        took_s=it.duration_s,
        span=Span("call", it.tool or "a call", it.duration_s or 0.0),
    )


def _ask(it: ConversationEntry) -> Line:
    asked = it.arguments if isinstance(it.arguments, dict) else {}
    question = " ".join(str(asked.get("question", "")).split())
    texts = ", ".join(map(str, asked.get("parts") or ()))
    pending = "no answer yet" if it.pending else ""
    how = "Failed ask" if it.is_error else "Ask"
    numbers = (_marked("took", _took(it)), _marked("tokens", _in_and_out(it)))
    return Line(
        *(("failed", "bad") if it.is_error else ("ask", "mark")),
        _numbered("Ask", it),
        head=f"{it.number}: {question}{f' ({texts})' if texts else ''}",
        body=it.text,
        lines=4,
        details=(_took(it), _tokens(it), pending),
        said=_marked(
            "heading", f"{how} {it.number} ", *numbers, *_if(pending, " ", _marked("pending", pending))
        ),
        text_lines=12 if it.text else 0,
        is_error=it.is_error,
        took_s=it.duration_s,
        span=Span("call"),
    )


def _cleared(it: ConversationEntry) -> Line:
    old = format_count(len(it.calls), "old result")
    said = _marked("", f"{old} cleared: the model is sent one line instead of each.")
    news = f"  {len(it.calls)} old results are cleared from its conversation"
    head = f"{old} replaced by one line each"
    shown = Line("cleared", "faint", "Results cleared", head, it.text, lines=4, news=news, said=said)
    return msgspec.structs.replace(shown, text_lines=12, is_mono=True)


def _end(it: ConversationEntry) -> Line:
    code = "" if it.exit_code is None else str(it.exit_code)
    head = f"{it.state} with code {code}" if code else it.state
    with_code = _if(code, " with code ", _marked("number", code))
    reason = in_words(it.text)
    why = _if(reason, ": ", _marked("said", reason))
    said = _marked("", _marked("state", it.state), *with_code, *why)
    is_failed = it.state == "failed"
    tone: Tone = "bad" if is_failed else "heading"
    return Line("end", tone, f"End: {it.state}", head, reason, said=said, is_error=is_failed)


def _marked(form: Form, *parts: str | Marked, title: str = "") -> Marked:
    """Return these parts, without those that are empty."""
    said = tuple(each for each in parts if (each if isinstance(each, str) else each.parts))
    return Marked(form, said, title)


def _if(value: object, *parts: str | Marked) -> tuple[str | Marked, ...]:
    return parts if value else ()


def _numbered(name: str, it: ConversationEntry) -> str:
    return f"{name} {it.number}" if it.number else name


def _took(it: ConversationEntry) -> str:
    return "" if it.duration_s is None else precise_duration(it.duration_s)


def _tokens(it: ConversationEntry) -> str:
    return "" if it.usage is None else f"{'~' if it.is_estimated else ''}{format_tokens(it.usage)}"


def _in_and_out(it: ConversationEntry) -> str:
    used = it.usage
    about = "~" if it.is_estimated else ""
    return (
        f"{about}{short_number(used.input_tokens)} in · {about}{short_number(used.output_tokens)} out"
        if used
        else ""
    )


def _called(it: ConversationEntry, form: Callable[[Any], str]) -> str:
    """Return a call with its arguments in a form."""
    if not isinstance(it.arguments, dict):
        return f"{it.tool}({form(it.arguments)})"
    return f"{it.tool}({', '.join(f'{name}={form(value)}' for name, value in it.arguments.items())})"


def _as_json(value: Any) -> str:
    text = msgspec.json.encode(value).decode("utf-8")
    return text if len(text) <= MAX_ARGUMENT_CHARS else f"{text[:MAX_ARGUMENT_CHARS]}..."


def _as_repr(value: Any) -> str:
    text, most = repr(value), MAX_NEWS_ARGUMENT_CHARS
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def _beginning(text: str) -> str:
    return f"{text[:MAX_NEWS_CHARS]}{'...' if len(text) > MAX_NEWS_CHARS else ''}"
