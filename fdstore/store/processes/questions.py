"""Questions of processes to a person, for the process that asks: asked once, and waited for at no cost.
`people` has the other side, that of people.

    fdstore:{triage}:questions          zset   triage.1/7 -> when asked: the open ones of the tree
    fdstore:{triage}:triage.1:questions hash   7            a question (JSON)
                                               7/asked      when, and 7/until when its time is over
                                               7/answer     what became of it (JSON), which is final
                                               call/ID      the number of the question of a call
                                               open         the numbers of the open ones
                                               next         the next number

A question belongs to one call: who repeats the call finds it again. It is settled in one step by the first
answer, by a look at it after its time, or because nothing waits for it any more; the end of its process
withdraws it. An agent that waits for one is parked (`waiting.park`), and an answer makes it ready.

A call of a tool that wants approval stores with its question what it will run with: its arguments, with
references replaced, and digests of the tool's schema and of the contents that its arguments name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from fdstore.errors import DamagedRecord, InvalidArgument, TooLarge
from fdstore.model.people import (
    MAX_CHOICE_CHARS,
    MAX_CHOICES,
    MAX_QUESTION_CHARS,
    OnTimeout,
    PersonAnswer,
    QuestionKind,
)
from fdstore.store.clock import seconds_of
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import decode_moment, decode_ordinal, decode_record, decoding, show_bytes
from fdstore.text.paging import encode
from fdstore.wire.operation import Operation
from fdstore.wire.scripts import script

MAX_OPEN = 100
"""Open questions that a process may have."""

MAX_TIMEOUT_S = 366 * 86_400


class StoredQuestion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question as it is stored. `arguments` is JSON; `schema` and `contents` are what an approved call is
    compared with before it runs: a digest of the tool's schema, and the contents that descriptors named."""

    kind: QuestionKind
    text: str = ""
    choices: tuple[str, ...] = ()
    fd: str | None = None
    tool: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    in_code: bool = False
    call: str = ""
    on_timeout: OnTimeout = "deny"
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=MAX_TIMEOUT_S)]
    schema: str = ""
    contents: dict[str, str] = {}


class Asked(NamedTuple):
    """A question that was asked: its number, until when it takes an answer, by Redis, and once there is one,
    this and the question as it was asked."""

    number: int
    until: float
    answer: PersonAnswer | None = None
    question: StoredQuestion | None = None


def write_arguments(arguments: object) -> msgspec.Raw:
    """Return the arguments of a call as JSON, exactly. Raises `InvalidArgument`."""
    try:
        written = json.dumps(arguments, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument("", f"the arguments cannot be written as JSON: {error}") from error
    return msgspec.Raw(encode(written))


def read_arguments(stored: msgspec.Raw) -> dict[str, Any]:
    """Return the arguments that `write_arguments` wrote. Raises one of `record_format.UNREADABLE`."""
    found = json.loads(bytes(stored))
    if not isinstance(found, dict):
        raise ValueError("the arguments are no JSON object")
    return found


def check_question(question: str, choices: Sequence[str]) -> None:
    """Raise `InvalidArgument` or `TooLarge` for what cannot be asked."""
    if not question.strip():
        raise InvalidArgument("question", "must say what the person is to decide")
    encode(question)
    if len(question) > MAX_QUESTION_CHARS:
        advice = "store the text, and name it with fd"
        raise TooLarge("the question", len(question), MAX_QUESTION_CHARS, advice)
    if len(choices) > MAX_CHOICES:
        raise InvalidArgument("choices", f"at most {MAX_CHOICES} choices are taken")
    for choice in choices:
        encode(choice)
        if not choice.strip() or len(choice) > MAX_CHOICE_CHARS:
            raise InvalidArgument("choices", f"each choice must be a text of 1-{MAX_CHOICE_CHARS} characters")


def ask(handle: ProcessHandle, slot: str, question: StoredQuestion) -> Operation[Asked]:
    """Ask a question under the id of its call, once: a repeat finds it, and its answer. One round trip.
    Raises `InvalidArgument` if too many are open, `Fenced`, `NotFound`."""
    asked = yield from _ask(handle, slot, msgspec.json.encode(question), question.timeout_s)
    assert asked is not None
    return asked


def look(handle: ProcessHandle, slot: str, timeout_s: float) -> Operation[Asked | None]:
    """Return the question of a call as it stands now; None if it was not asked. One that nobody answered in
    its time has that as its answer from then on. One round trip. Raises `Fenced`, `NotFound`."""
    return (yield from _ask(handle, slot, b"", timeout_s))


def _ask(handle: ProcessHandle, slot: str, record: bytes, timeout_s: float) -> Operation[Asked | None]:
    keys = handle.keys
    command = script("questions_ask")(
        tree=keys.tree.record,
        process=keys.record,
        questions=keys.questions,
        open=keys.tree.questions,
        process_id=handle.id,
        attempt=handle.attempt,
        call=slot,
        record=record,
        timeout_s=timeout_s,
        most_open=MAX_OPEN,
    )
    [reply] = yield [command]
    if reply[0] == b"full":
        raise InvalidArgument("", f"{MAX_OPEN} questions of this process are open; wait for their answers")
    if reply[0] == b"lost":
        problem = "is not there, or has no time at which its time is over"
        raise DamagedRecord(_what(handle, show_bytes(reply[1])), problem)
    number, *rest = outcome(reply, handle.id)
    if not number:
        return None
    what = _what(handle, show_bytes(number))
    with decoding(what):
        asked = Asked(decode_ordinal(number), decode_moment(rest[0]))
        if rest[1:]:
            answer, question = (
                decode_record(rest[1], PersonAnswer, what),
                decode_record(rest[2], StoredQuestion, what),
            )
            _check_answer(question, answer)
            asked = asked._replace(answer=answer, question=question)
        return asked


def _what(handle: ProcessHandle, number: str) -> str:
    return f"question {number} of process {handle.id}"


def _check_answer(question: StoredQuestion, answer: PersonAnswer) -> None:
    """Raise `ValueError` if the answer does not fit the question."""
    if not answer.at_ms:
        raise ValueError("its answer has no time")
    is_approval = question.kind == "approval"
    if answer.how == "answer" and (answer.approved is None) is is_approval:
        raise ValueError("its answer is that of another kind of question")
    if answer.how == "answer" and not is_approval and not answer.text:
        raise ValueError("its answer is empty")


def any_settled(handle: ProcessHandle, numbers: Sequence[int]) -> Operation[bool]:
    """Return whether one of these questions has an answer, or its time is over. One round trip."""
    fields = [f"{number}/{part}" for number in numbers for part in ("answer", "until")]
    found, now = yield [("HMGET", handle.keys.questions, *fields), ("TIME",)]
    now_s = seconds_of(now)
    with decoding(f"the questions of process {handle.id}"):
        return any(
            answer is not None or decode_moment(until) <= now_s
            for answer, until in zip(found[::2], found[1::2], strict=True)
        )
