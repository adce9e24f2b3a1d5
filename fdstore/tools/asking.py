"""Ask a person: a question of the model, or whether a call may run.

Both are a call that is made again once there is an answer: the first run asks and returns `Started` with the
question, a later one finds it with its answer. So it makes no difference which worker goes on, or when.

What a person approves is what runs. The arguments of a user's function are stored with the question after
`{{...}}` was replaced, and the call runs with those. Of a built-in tool the contents that its descriptors
mean are noted, and the call is refused if one means another content by then; likewise if the schema of the
tool has changed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from fdstore.elements.facts import ResultFacts
from fdstore.elements.render import person_answer
from fdstore.errors import DamagedRecord, NobodyAnswered, NotFound
from fdstore.model.people import PersonAnswer, Question, QuestionKind
from fdstore.results.context import Context, Passed
from fdstore.results.json_text import json_text
from fdstore.results.tool_outcome import Started, ToolOutcome, ToolResult, tool_result
from fdstore.results.wrapping import exceeds_threshold, store_text
from fdstore.store.contents.resolving import content_info
from fdstore.store.processes import questions
from fdstore.store.processes.questions import Asked, StoredQuestion
from fdstore.store.record_format import decoding
from fdstore.telemetry import tracing
from fdstore.text.quantities import duration
from fdstore.text.selection import selector
from fdstore.wire.operation import Disk, Operation

SOURCE = "person"
"""The source of a long answer, as the model sees it."""


APPROVAL = "/approval"
"""The end of the id under which a call asks for approval."""

LOOK_EVERY_S = 0.5
"""How often a call that waits in a loop of the user's own looks for an answer."""


class Settled(msgspec.Struct, frozen=True):
    """A question with its answer."""

    number: int
    answer: PersonAnswer


def ask_question(
    context: Context, text: str, choices: tuple[str, ...], fd: object, slot: str, *, in_code: bool = False
) -> Operation[Settled | Started]:
    """Ask a question of the model under the id of its call. Raises `InvalidArgument`, `TooLarge`, `NotFound`
    for what cannot be asked; `NobodyAnswered` if the agent is to fail then."""
    section = context.people
    asked = None
    if not context.is_new_call:
        asked = yield from questions.look(context.handle, slot, section.timeout_s)
    if asked is None:
        questions.check_question(text, choices)
        named = None
        if fd is not None:
            chosen = selector(fd)
            yield from content_info(context.handle, chosen.fd)
            named = str(chosen)
        question = StoredQuestion(
            kind="question",
            text=text,
            choices=choices,
            fd=named,
            in_code=in_code,
            call=slot,
            on_timeout=section.on_timeout,
            timeout_s=section.timeout_s,
        )
        asked = yield from questions.ask(context.handle, slot, question)
    return _settled(context, asked, "question", slot)


def _settled(context: Context, asked: Asked, kind: QuestionKind, call: str) -> Settled | Started:
    """Return a question with its answer, or what its call waits for. Raises `DamagedRecord` for a question
    that is of another call: an answer counts for the call that a person was shown."""
    seconds = context.people.timeout_s
    if asked.answer is None:
        tracing.question(asked.number)
        return Started((), asked.until, seconds, resumes=True, questions=(asked.number,))
    answer, question = asked.answer, asked.question
    if question is None or (question.kind, question.call) != (kind, call):
        what = f"question {asked.number} of process {context.handle.id}"
        raise DamagedRecord(what, "another call asked it")
    waited_s = max(0.0, answer.at_ms / 1000 - (asked.until - seconds))
    tracing.question(asked.number, how=answer.how, door=answer.door, waited_s=round(waited_s, 3))
    if asked.answer.how == "timeout" and context.people.on_timeout == "fail":
        raise NobodyAnswered("an answer", context.people.timeout_s, asked.number)
    return Settled(asked.number, asked.answer)


def show_answer(context: Context, settled: Settled, slot: str | None) -> Operation[ToolOutcome]:
    """Return the answer to a question as the result of its call."""
    answer = settled.answer
    if answer.how != "answer":
        said = f"{unanswered(context, answer)}; go on without an answer, or say what you need"
        return tool_result(person_answer(answer, settled.number, said), is_error=True)
    if not exceeds_threshold(context, answer.text, SOURCE):
        return person_answer(answer, settled.number, answer.text)
    stored = yield from store_text(context, answer.text, SOURCE, None if slot is None else f"{slot}/answer")
    return person_answer(answer, settled.number, result=stored)


def for_code(context: Context, settled: Settled) -> Passed:
    """Return the answer to a question as code gets it."""
    answer = settled.answer
    if answer.how != "answer":
        return Passed(error=f"timeout: {unanswered(context, answer)}")
    return Passed(value=answer.text, shown=person_answer(answer, settled.number))


def wait_for_answer(context: Context, numbers: tuple[int, ...]) -> Operation[None]:
    """Wait until one of these questions has an answer, or its time is over: in a loop of the user's own."""
    while not (yield from questions.any_settled(context.handle, numbers)):
        yield Disk(partial(time.sleep, LOOK_EVERY_S))


def unanswered(context: Context, answer: PersonAnswer) -> str:
    """Return why a question has no answer of a person."""
    if answer.how == "withdrawn":
        return "The question was withdrawn"
    return f"Nobody answered within {duration(context.people.timeout_s)}"


# --- approvals


class FrozenCall(NamedTuple):
    """What a call will run with: its arguments, and the descriptors that they name."""

    arguments: Any
    fds: tuple[object, ...] = ()


def approve(
    context: Context,
    tool: str,
    schema: Mapping[str, Any],
    freeze: Operation[FrozenCall],
    slot: str | None,
    *,
    in_code: bool = False,
) -> Operation[Passed | Started]:
    """Ask a person whether a call may run, under its id; `freeze` is run when it is asked. It may not if what
    was approved is not what would run any more. Raises what `freeze` raises, and `NobodyAnswered` if the
    agent is to fail then."""
    if context.approve is not None:
        return (yield from _ask_function(context, tool, (yield from freeze).arguments, slot or "", in_code))
    assert slot is not None, "a call of an agent has an id"
    section, digest, call = context.people, _digest(schema), slot.removesuffix(APPROVAL)
    asked = None
    if not context.is_new_call:
        asked = yield from questions.look(context.handle, slot, section.timeout_s)
    if asked is None:
        frozen = yield from freeze
        question = StoredQuestion(
            kind="approval",
            tool=tool,
            arguments=questions.write_arguments(frozen.arguments),
            in_code=in_code,
            call=call,
            on_timeout=section.on_timeout,
            timeout_s=section.timeout_s,
            schema=digest,
            contents=(yield from _contents(context, frozen.fds)),
        )
        asked = yield from questions.ask(context.handle, slot, question)
    settled = _settled(context, asked, "approval", call)
    if isinstance(settled, Started):
        return settled
    number, answer, stored = settled.number, settled.answer, asked.question
    if not answer.approved:
        return _denied(context, tool, number, answer)
    assert stored is not None
    if stored.tool != tool or stored.schema != digest:
        problem = f"{tool} has changed since a person approved this call, so it was not run; make it again"
    else:
        problem = yield from _changed_content(context, stored.contents, tool)
    if problem:
        return Passed(error=problem, shown=person_answer(answer, number, problem, tool=tool))
    with decoding(f"question {number} of process {context.handle.id}"):
        arguments = questions.read_arguments(stored.arguments)
    return _passed(tool, arguments, number, answer)


def _ask_function(context: Context, tool: str, arguments: Any, slot: str, in_code: bool) -> Operation[Passed]:
    """Ask the function of a loop of the user's own."""
    assert context.approve is not None
    questions.write_arguments(arguments)
    question = Question(
        process=context.handle.id,
        number=1,
        kind="approval",
        tool=tool,
        arguments=arguments,
        in_code=in_code,
        call=slot,
        asked_at=0.0,
        until=0.0,
    )
    answer: PersonAnswer = yield Disk(partial(context.approve, question))
    if not answer.approved:
        return _denied(context, tool, 0, answer)
    return _passed(tool, arguments, 0, answer)


def _denied(context: Context, tool: str, number: int, answer: PersonAnswer) -> Passed:
    why = answer.reason if answer.how == "answer" else unanswered(context, answer)
    said = f"The call was not run: {why}" if why else "The call was not run."
    shown = person_answer(msgspec.structs.replace(answer, approved=False), number, said, tool=tool)
    return Passed(error=said, shown=shown)


def _passed(tool: str, arguments: Any, number: int, answer: PersonAnswer) -> Passed:
    if answer.arguments is None:
        return Passed(arguments=arguments, shown=person_answer(answer, number, tool=tool, is_shown=False))
    changed = json_text(answer.arguments)
    said = f"The arguments of {tool} were changed to: {changed}"
    shown = person_answer(answer, number, said, tool=tool)
    return Passed(arguments=answer.arguments, shown=shown, note=f"{answer.by or 'A person'}: {said}")


def with_answer(outcome: ToolResult | Started, passed: Passed) -> ToolResult | Started:
    """Return the outcome of an approved call with who approved it."""
    before, facts = said_before(passed)
    if isinstance(outcome, Started):
        return msgspec.structs.replace(outcome, before=before, facts=facts)
    return outcome.behind(before, facts)


def said_before(passed: Passed) -> tuple[str, ResultFacts]:
    """Return what stands before the outcome of an approved call, an error too: for the record who approved
    it, for the model only if the person changed its arguments."""
    if passed.shown is None:
        return "", ResultFacts()
    return passed.shown.text if passed.note else "", passed.shown.facts


def _contents(context: Context, fds: tuple[object, ...]) -> Operation[dict[str, str]]:
    """Return which contents these descriptors mean now. Raises `NotFound`, `InvalidArgument`."""
    found: dict[str, str] = {}
    for named in fds:
        fd = selector(named).fd
        found[fd] = yield from _identity(context, fd)
    return found


def _identity(context: Context, fd: str) -> Operation[str]:
    descriptor = (yield from content_info(context.handle, fd)).descriptor
    return f"{descriptor.producer} {descriptor.created_at:.6f}"


def _changed_content(context: Context, contents: Mapping[str, str], tool: str) -> Operation[str]:
    """Return why a call must not run whose descriptors meant these contents; "" if they still do."""
    for fd, identity in contents.items():
        try:
            now = yield from _identity(context, fd)
        except NotFound:
            now = ""
        if now != identity:
            problem = f"{fd} means another text than the one that a person approved"
            return f"{problem}, so {tool} was not run; make the call again"
    return ""


def _digest(schema: Mapping[str, Any]) -> str:
    written = msgspec.json.encode(schema, order="deterministic", enc_hook=str)
    return hashlib.sha256(written).hexdigest()[:16]
