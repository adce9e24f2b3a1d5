"""A question to a person as pages show it: its texts, what an approved call would do, and how to answer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

import msgspec

from fdstore.errors import DamagedRecord, FDStoreError, InvalidArgument
from fdstore.inspector.reading.cutting import cut_value
from fdstore.inspector.web.file_change import FileChange, file_change
from fdstore.inspector.web.page import PageRequest
from fdstore.inspector.web.rendering import MAX_CHARS
from fdstore.model.lifecycle import ENDED
from fdstore.model.people import Question
from fdstore.model.records import ProcessRecord, Record, TreeLimits, Unreadable
from fdstore.store.contents import descriptors, reading
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import people
from fdstore.store.record_format import unreadable
from fdstore.text.layout import show_controls_in_json
from fdstore.text.selection import Part, parse_request
from fdstore.text.surrogates import escape_surrogates
from fdstore.tools.arguments import named_fds
from fdstore.tools.built_in import pipe
from fdstore.tools.catalogue import BUILT_IN
from fdstore.wire.operation import Operation

SHOWN_TEXTS = 3
"""Texts of one question whose beginnings are shown."""

PREVIEW_CHARS = 1_500

MAX_PART_CHARS = 20_000
"""A longer part of a text is only linked to."""

EDITED_CHARS = 8_000
"""Characters of arguments that can be edited beside other questions; `EDITED_ALONE_CHARS` on a page of its
own."""
EDITED_ALONE_CHARS = 100_000

AT_THE_TOP = 3
"""Questions at the top of the page of a process or a tree."""


class ShownText(Record, frozen=True, kw_only=True):
    """The beginning of a text that a question names: as it names it, where it is from, and its length in
    characters. `problem` is why there is none."""

    named: str
    fd: str = ""
    source: str = ""
    chars: int = 0
    text: str = ""
    problem: str = ""


class QuestionCard(Record, frozen=True, kw_only=True):
    """A question; its arguments are cut. `edited` are all of them, to edit as JSON; "" if it has none, or too
    many to edit here. `command` is the pipeline that the call would run, `change` what it would do to a file.
    `commands` answer it in a terminal."""

    question: Question
    edited: str = ""
    command: str = ""
    texts: tuple[ShownText, ...] = ()
    change: FileChange | None = None
    commands: tuple[str, ...] = ()


class OpenCards(Record, frozen=True, kw_only=True):
    """The questions that a process or a tree waits with: the first as cards, of `total`."""

    cards: tuple[QuestionCard, ...] = ()
    total: int = 0
    unreadable: tuple[Unreadable, ...] = ()


NOTHING = OpenCards()


async def waiting_of(request: PageRequest, process: ProcessRecord) -> OpenCards:
    """Return the open questions of a process."""
    if process.state in ENDED or process.kind is not None:
        return NOTHING
    store = request.store
    try:
        found = await store.run(people.questions_of(store.prefix, process.id))
    except DamagedRecord as error:
        return OpenCards(unreadable=(unreadable(error),))
    return await _waiting(request, found.questions, found.unreadable)


async def waiting_of_tree(request: PageRequest, tree: str) -> OpenCards:
    """Return the open questions of a tree."""
    store = request.store
    found = await store.run(people.open_questions(store.prefix, tree))
    return await _waiting(request, found.questions, found.unreadable)


async def _waiting(
    request: PageRequest, questions: Sequence[Question], damaged: Sequence[Unreadable]
) -> OpenCards:
    cards = await cards_of(request, questions[:AT_THE_TOP])
    return OpenCards(cards=cards, total=len(questions), unreadable=tuple(damaged))


async def cards_of(
    request: PageRequest, questions: Sequence[Question], room: int = EDITED_CHARS
) -> tuple[QuestionCard, ...]:
    """Return these questions as cards; arguments of up to `room` characters can be edited."""
    return tuple([await _card(request, each, room) for each in questions])


async def _card(request: PageRequest, question: Question, room: int) -> QuestionCard:
    store = request.store
    handle = ProcessHandle(process_keys(store.prefix, question.process), TreeLimits())
    edited = "" if question.kind == "question" else written(question.arguments)
    named: list[str | int] = [] if question.fd is None else [question.fd]
    if question.kind == "approval" and question.tool in BUILT_IN:
        named += [
            each
            for each in named_fds(BUILT_IN[question.tool].arguments, question.arguments)
            if isinstance(each, (str, int))
        ]
    change = await file_change(
        store, handle, question.tool, question.arguments, request.inspector.options.export_root
    )
    return QuestionCard(
        question=msgspec.structs.replace(
            question,
            text=escape_surrogates(question.text),
            choices=tuple(map(escape_surrogates, question.choices)),
            arguments=_without_surrogates(cut_value(question.arguments, MAX_CHARS)),
        ),
        edited=edited if len(edited) <= room else "",
        command=escape_surrogates(command_of(question)),
        texts=tuple([await store.run(_text(handle, each)) for each in named[:SHOWN_TEXTS]]),
        change=change,
        commands=commands_for(question),
    )


def written(arguments: dict[str, Any]) -> str:
    r"""Return arguments as JSON for people, with what a screen would hide as escapes of JSON.

    >>> print(written({"to": "a\u202eb", "n": 1.0}))
    {
      "to": "a\u202eb",
      "n": 1.0
    }
    """
    lines = json.dumps(arguments, indent=2, ensure_ascii=False).split("\n")
    return "\n".join(map(show_controls_in_json, lines))


def parse_arguments(text: str, tool: str) -> dict[str, Any]:
    r"""Return the arguments that a person wrote as JSON, checked as those of a built-in tool are. Raises
    `InvalidArgument`.

    >>> parse_arguments('{"n" 1}', "deploy")
    Traceback (most recent call last):
    fdstore.errors.base.InvalidArgument: arguments: this is not JSON: line 1, column 6: ...
    """
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        problem = f"this is not JSON: line {error.lineno}, column {error.colno}: {error.msg.lower()}"
        raise InvalidArgument("arguments", problem) from error
    except (ValueError, RecursionError) as error:
        raise InvalidArgument("arguments", f"this is not JSON that can be read: {error}") from error
    if not isinstance(found, dict):
        raise InvalidArgument("arguments", 'a JSON object is needed, such as {"name": "value"}')
    if tool in BUILT_IN:
        from fdstore.tools.arguments import convert

        try:
            convert(BUILT_IN[tool].arguments, found)
        except InvalidArgument as error:
            raise InvalidArgument("arguments", str(error)) from error
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no value of JSON")


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return escape_surrogates(value)
        case list():
            return [_without_surrogates(each) for each in value]
        case dict():
            return {escape_surrogates(name): _without_surrogates(each) for name, each in value.items()}
    return value


def command_of(question: Question) -> str:
    """Return the pipeline that a call would run; "" for other calls."""
    lines = question.arguments.get("commands")
    if question.tool != pipe.TOOL.name or not isinstance(lines, list):
        return ""
    return " | ".join(each for each in lines if isinstance(each, str))[:MAX_CHARS]


def commands_for(question: Question) -> tuple[str, ...]:
    """Return the commands that answer a question in a terminal. Among choices none is made beforehand.

    >>> asked = Question(process="triage.1", number=2, kind="approval", asked_at=0.0, until=1.0)
    >>> commands_for(asked)[0]
    'fdstore answer triage.1 --question 2 --yes'
    """
    begin = f"fdstore answer {shlex.quote(question.process)} --question {question.number}"
    if question.kind == "approval":
        return (f"{begin} --yes", f"{begin} --no --reason '...'")
    return (*([f"{begin} --choice N"] if question.choices else []), f"{begin} '...'")


def _text(handle: ProcessHandle, named: str | int) -> Operation[ShownText]:
    """Return the beginning of a text. A text that cannot be read says why: the question is shown anyway."""
    shown = ShownText(named=f"fd:{named}" if isinstance(named, int) else escape_surrogates(named))
    try:
        chosen = parse_request(named)
        descriptor = yield from descriptors.stat(handle, chosen.fd)
        shown = msgspec.structs.replace(shown, fd=chosen.fd, source=descriptor.source, chars=descriptor.chars)
        if descriptor.kind == "bytes" or not descriptor.chars:
            return shown
        part = chosen.part or Part("char", 1, min(PREVIEW_CHARS, descriptor.chars))
        found = yield from reading.read(handle, chosen.fd, part, MAX_PART_CHARS)
    except FDStoreError as error:
        if error.stops:
            raise
        return msgspec.structs.replace(shown, problem=str(error))
    chars = descriptor.chars if chosen.part is None else len(found.text)
    return msgspec.structs.replace(shown, chars=chars, text=found.text[:PREVIEW_CHARS])
