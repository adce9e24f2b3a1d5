"""Questions of processes to a person, for people: list the open ones, and answer them; the first answer is
final. `questions` has the other side, that of the process that asks, and draws the keys.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

import msgspec

from fdstore.errors import (
    DamagedRecord,
    InvalidArgument,
    NotFound,
    QuestionClosed,
    TooLarge,
    quoted,
)
from fdstore.model.flags import check_flag
from fdstore.model.lifecycle import ENDED
from fdstore.model.people import (
    MAX_ANSWER_CHARS,
    MAX_NAME_CHARS,
    AskingProcess,
    GivenAnswer,
    PersonAnswer,
    Question,
)
from fdstore.model.records import Unreadable
from fdstore.store.clock import seconds_of
from fdstore.store.keys import ProcessKeys, TreeKeys, check_root, in_pieces, member_of, process_keys
from fdstore.store.outcomes import outcome
from fdstore.store.processes.process_records import missing
from fdstore.store.processes.questions import MAX_OPEN, StoredQuestion, read_arguments, write_arguments
from fdstore.store.record_format import (
    decode_moment,
    decode_or_none,
    decode_ordinal,
    decode_record,
    decoding,
    replies_of_trees,
    replies_or_damage,
    required,
    show_bytes,
    skipping,
)
from fdstore.store.tree_facts import tree_names
from fdstore.text.paging import encode
from fdstore.text.quantities import format_count
from fdstore.wire.operation import Batch, Command, Operation, new_op
from fdstore.wire.scripts import script, text

log = logging.getLogger("fdstore.store")

_ENDED = frozenset(state.encode() for state in ENDED)

MAX_LISTED = 1000
"""Open questions of one tree that are listed."""


class OpenQuestions(msgspec.Struct, frozen=True):
    """Open questions, those that were asked first in front, and what cannot be read."""

    questions: list[Question]
    unreadable: list[Unreadable]


def open_questions(prefix: str, tree: str | None = None) -> Operation[OpenQuestions]:
    """Return the open questions of a tree, or of all trees. Three round trips for some hundred trees and
    questions. Raises `InvalidArgument`, `NotFound` for a tree that does not exist."""
    found = OpenQuestions([], [])
    if tree is None:
        names = yield from tree_names(prefix, found.unreadable)
    else:
        names = [check_root(tree)]
        [there] = yield [("EXISTS", TreeKeys(prefix, tree).record)]
        if not there:
            raise (yield from missing(process_keys(prefix, tree)))
    listed: list[tuple[ProcessKeys, bytes]] = []
    for some in in_pieces(names):
        trees = [TreeKeys(prefix, name) for name in some]
        replies = yield from replies_of_trees(
            [("ZRANGE", each.questions, 0, MAX_LISTED - 1) for each in trees]
        )
        for of_tree, members in zip(trees, replies, strict=True):
            with skipping(found.unreadable):
                for member in required(members):
                    process, _, number = member.rpartition(b"/")
                    if (of := member_of(of_tree, process)) is not None and number.isdigit():
                        listed.append((of, number))
                    else:
                        problem = f"{show_bytes(member)} is not a question of this tree"
                        found.unreadable.append(Unreadable(what=of_tree.questions, problem=problem))
    for piece in in_pieces(listed, 100):
        batch: Batch = [("TIME",)]
        for keys, number in piece:
            fields = (number, number + b"/asked", number + b"/until", number + b"/answer")
            batch += [("HMGET", keys.questions, *fields), ("HMGET", keys.record, "program", "state")]
        now, *replies = yield from replies_or_damage(batch)
        now_s = seconds_of(required(now))
        for (keys, number), of_question, of_process in zip(piece, replies[::2], replies[1::2], strict=True):
            with skipping(found.unreadable):
                question = _question(keys, number, required(of_question), required(of_process)[0])
                if question is not None and question.until > now_s:
                    found.questions.append(question)
    found.questions.sort(key=lambda each: (each.asked_at, each.process, each.number))
    return found


def log_unreadable(found: OpenQuestions) -> None:
    """Log what cannot be read, for callers that return only the questions."""
    for each in found.unreadable:
        log.warning("%s cannot be read: %s", each.what, each.problem)


def _question(
    keys: ProcessKeys, number: bytes, fields: list[bytes | None], program: bytes | None
) -> Question | None:
    """Decode a question; None for one that is settled, or was withdrawn. Raises `DamagedRecord`."""
    record, asked, until, answer = fields
    if answer is not None or record is None:
        return None
    what = f"question {show_bytes(number)} of process {keys.process}"
    stored = decode_record(record, StoredQuestion, what)
    with decoding(what):
        return Question(
            process=keys.process,
            number=decode_ordinal(number),
            kind=stored.kind,
            text=stored.text,
            choices=stored.choices,
            fd=stored.fd,
            tool=stored.tool,
            arguments=read_arguments(stored.arguments),
            in_code=stored.in_code,
            call=stored.call,
            program=None if program is None else text(program),
            asked_at=decode_moment(asked or b""),
            until=decode_moment(until or b""),
            on_timeout=stored.on_timeout,
        )


def questions_of(prefix: str, process: str) -> Operation[OpenQuestions]:
    """Return the open questions of one process, in the order of their numbers. Two round trips. Raises
    `NotFound`, `DamagedRecord` if it cannot be read which are open."""
    keys = process_keys(prefix, process)
    state, program, numbers, now = yield [
        ("HGET", keys.record, "state"),
        ("HGET", keys.record, "program"),
        ("HGET", keys.questions, "open"),
        ("TIME",),
    ]
    if state is None:
        raise (yield from missing(keys))
    names = (numbers or b"").split()[:MAX_OPEN]
    replies = yield [
        ("HMGET", keys.questions, each, each + b"/asked", each + b"/until", each + b"/answer")
        for each in names
    ]
    found, now_s = OpenQuestions([], []), seconds_of(now)
    for each, reply in zip(names, replies, strict=True):
        with skipping(found.unreadable):
            question = _question(keys, each, reply, program)
            if question is not None and question.until > now_s:
                found.questions.append(question)
    return found


class AskedQuestion(NamedTuple):
    """A question, and what became of it: its answer, or the state of its process, which ended without one."""

    question: Question
    answer: PersonAnswer | None
    ended: str


def asked_question(prefix: str, process: str, number: int) -> Operation[AskedQuestion]:
    """Return a question of a process, open or not. One round trip. Raises `NotFound`, `DamagedRecord`."""
    keys, name = process_keys(prefix, process), str(number).encode()
    state, program, (record, asked, until, answer) = yield [
        ("HGET", keys.record, "state"),
        ("HGET", keys.record, "program"),
        ("HMGET", keys.questions, name, name + b"/asked", name + b"/until", name + b"/answer"),
    ]
    if state is None:
        raise (yield from missing(keys))
    question = _question(keys, name, [record, asked, until, None], program)
    if question is None:
        raise NotFound(f"question {number} of process {process}")
    found = None
    if answer is not None:
        found = decode_record(answer, PersonAnswer, f"the answer to question {number} of process {process}")
    return AskedQuestion(question, found, text(state) if state in _ENDED else "")


def who_asks(prefix: str) -> Operation[list[AskingProcess]]:
    """Return the processes with open questions, of all trees. Two round trips for some hundred trees."""
    names = yield from tree_names(prefix)
    found: list[AskingProcess] = []
    for some in in_pieces(names):
        trees = [TreeKeys(prefix, name) for name in some]
        replies = yield from replies_of_trees([listed_questions(each) for each in trees])
        for tree, reply in zip(trees, replies, strict=True):
            found += asking_processes(tree, reply)
    return found


def listed_questions(tree: TreeKeys) -> Command:
    """Return the command whose reply `asking_processes` reads."""
    return ("ZRANGE", tree.questions, 0, MAX_LISTED - 1)


def asking_processes(tree: TreeKeys, reply: list[bytes] | DamagedRecord) -> list[AskingProcess]:
    """Return the processes of a tree that have open questions, those that asked first in front. What is not a
    question is left out; `open_questions` names it."""
    counts: dict[str, int] = {}
    for member in [] if isinstance(reply, DamagedRecord) else reply:
        process, _, number = member.rpartition(b"/")
        if number.isdigit() and (keys := member_of(tree, process)) is not None:
            counts[keys.process] = counts.get(keys.process, 0) + 1
    return [AskingProcess(process=process, questions=count) for process, count in counts.items()]


def problems_of(tree: TreeKeys, members: Sequence[str], ended: Container[str]) -> Operation[dict[str, str]]:
    """Return what is wrong with these members of a tree's open questions; `ended` processes ask nothing. One
    round trip."""
    problems: dict[str, str] = {}
    asked: list[tuple[str, ProcessKeys, bytes]] = []
    for member in members:
        process, _, number = member.encode().rpartition(b"/")
        keys = member_of(tree, process)
        if keys is None or not number.isdigit():
            problems[member] = "is not a question of this tree"
        elif keys.process in ended:
            problems[member] = "is of a process that has ended"
        else:
            asked.append((member, keys, number))
    replies = yield from replies_or_damage(
        [
            ("HMGET", keys.questions, number, number + b"/asked", number + b"/until", number + b"/answer")
            for _, keys, number in asked
        ]
    )
    for (member, keys, number), reply in zip(asked, replies, strict=True):
        try:
            if _question(keys, number, required(reply), None) is None:
                problems[member] = "is settled, or was never asked"
        except DamagedRecord as error:
            problems[member] = f"cannot be read: {error.problem}"
    return problems


class TakenAnswer(NamedTuple):
    """An answer that was stored, and whether its process became ready and needs a wake-up."""

    answer: PersonAnswer
    wakes: bool


def answer(prefix: str, process: str, given: GivenAnswer) -> Operation[TakenAnswer]:
    """Answer a question of a process; the first answer stays. Raises `InvalidArgument`, `TooLarge`,
    `NotFound`, `QuestionClosed`, `DamagedRecord`."""
    keys = process_keys(prefix, process)
    chosen = yield from _chosen(keys, given.question)
    said = decide(chosen, given)
    said = msgspec.structs.replace(said, by=said.by or "someone")
    [reply] = yield [
        script("questions_answer")(
            tree=keys.tree.record,
            process=keys.record,
            questions=keys.questions,
            open=keys.tree.questions,
            answers=keys.tree.answer(new_op()),
            process_id=keys.process,
            number=chosen.number,
            record=_encode_answer(said),
        )
    ]
    _raise_closed(reply, keys.process, chosen.number)
    stored, wakes = outcome(reply, keys.process)
    what = f"question {chosen.number} of process {process}"
    return TakenAnswer(decode_record(stored, PersonAnswer, what), wakes == b"wake")


def _encode_answer(answer: PersonAnswer) -> bytes:
    fields: dict[str, Any] = msgspec.structs.asdict(answer)
    del fields["at_ms"]  # the script adds it
    kept = {name: value for name, value in fields.items() if value not in (None, "")}
    return bytes(write_arguments(kept))


def _raise_closed(reply: list[Any], process: str, number: int) -> None:
    """Raise the error of a question that takes no answer."""
    match reply[0]:
        case b"answered":
            raise QuestionClosed(process, number, describe_end(decode_or_none(reply[1], PersonAnswer)))
        case b"ended":
            raise QuestionClosed(process, number, f"its process has ended ({show_bytes(reply[1])})")
        case b"late":
            raise QuestionClosed(process, number, "its time is over")
        case b"none":
            known = tuple(f"question {show_bytes(each)}" for each in reply[1].split()[:MAX_OPEN])
            raise NotFound(f"question {number} of process {process}", known)


def describe_end(answer: PersonAnswer | None) -> str:
    """Return why a question with this answer takes no other one."""
    if answer is None:
        return "it has an answer, which cannot be read"
    if answer.how == "timeout":
        return "its time is over"
    if answer.how == "withdrawn":
        return "it was withdrawn"
    return f"{quoted(answer.by or 'someone')} answered it already"


def _chosen(keys: ProcessKeys, number: int | None) -> Operation[Question]:
    """Return the open question of a process with this number, or the only one. Raises `NotFound`,
    `QuestionClosed`, `InvalidArgument` if there are several."""
    if number is not None:
        if type(number) is not int or not 1 <= number <= 2**53:
            raise InvalidArgument("question", "the number of a question is needed, as `questions` shows it")
        name = str(number).encode()
        state, program, fields, listed = yield [
            ("HGET", keys.record, "state"),
            ("HGET", keys.record, "program"),
            ("HMGET", keys.questions, name, name + b"/asked", name + b"/until", name + b"/answer"),
            ("HGET", keys.questions, "open"),
        ]
        if state is None:
            raise (yield from missing(keys))
        found = _question(keys, name, fields, program)
        if found is None:
            end = [b"none", listed or b""] if fields[0] is None else [b"answered", fields[3]]
            _raise_closed(end, keys.process, number)
        assert found is not None
        return found
    those = yield from questions_of(keys.tree.prefix, keys.process)
    count = len(those.questions) + len(those.unreadable)
    if not those.questions and those.unreadable:
        raise DamagedRecord(those.unreadable[0].what, those.unreadable[0].problem)
    if not those.questions:
        raise NotFound(f"an open question of process {keys.process}")
    if count > 1:
        numbers = ", ".join(str(each.number) for each in those.questions)
        damaged = f" ({len(those.unreadable)} cannot be read)" if those.unreadable else ""
        raise InvalidArgument(
            "question",
            f"{keys.process} asks {format_count(count, 'question')}{damaged}: name one of {numbers}",
        )
    return those.questions[0]


def decide(question: Question, given: GivenAnswer) -> PersonAnswer:
    """Return the answer to a question. Raises `InvalidArgument` for one that does not fit it, `TooLarge`."""
    by, door = _name("by", given.by), _name("door", given.door)
    return msgspec.structs.replace(_decide(question, given), by=by, door=door)


def _decide(question: Question, given: GivenAnswer) -> PersonAnswer:
    text, choice, approve = given.text, given.choice, given.approve
    reason, arguments = given.reason, given.arguments
    if question.kind == "approval":
        if text is not None or choice is not None:
            problem = f"question {question.number} asks whether {question.tool} may run; answer yes or no"
            raise InvalidArgument("text" if choice is None else "choice", problem)
        if approve is None:
            raise InvalidArgument("approve", f"say whether {question.tool} may run: yes or no")
        if check_flag("approve", approve) and reason:
            raise InvalidArgument("reason", "is of a no; leave it out")
        if arguments is not None and (not approve or not isinstance(arguments, dict)):
            problem = "a JSON object is needed" if approve else "are of a yes; leave them out"
            raise InvalidArgument("arguments", problem)
        _check_text("reason", reason)
        if arguments is not None and len(bytes(write_arguments(arguments))) > 4 * MAX_ANSWER_CHARS:
            raise InvalidArgument("arguments", f"at most {4 * MAX_ANSWER_CHARS} bytes are taken")
        is_same = arguments is None or _in_order(arguments) == _in_order(question.arguments)
        changed = None if is_same else arguments
        return PersonAnswer(approved=approve, reason=reason, arguments=changed)
    if approve is not None or reason or arguments is not None:
        raise InvalidArgument("approve", f"question {question.number} asks for a text, not for a yes or no")
    if choice is not None:
        if text is not None:
            raise InvalidArgument("choice", "a text is given too; leave one of them out")
        if type(choice) is not int or not 1 <= choice <= len(question.choices):
            there_are = f"1-{len(question.choices)}" if question.choices else "none: answer with a text"
            raise InvalidArgument("choice", f"there is no such choice; there are: {there_are}")
        return PersonAnswer(choice=choice, text=question.choices[choice - 1])
    if text is None:
        raise InvalidArgument("text", "an answer is needed")
    _check_text("text", text)
    if not text.strip():
        raise InvalidArgument("text", "an answer is needed")
    if text in question.choices:
        return PersonAnswer(choice=question.choices.index(text) + 1, text=text)
    return PersonAnswer(text=text)


def _in_order(arguments: dict[str, Any]) -> str:
    """Return arguments as a text that tells `1` from `true`, and no order of keys from another."""
    return json.dumps(arguments, sort_keys=True)


def _check_text(name: str, value: str) -> None:
    if not isinstance(value, str):
        raise InvalidArgument(name, "must be a text")
    encode(value)
    if len(value) > MAX_ANSWER_CHARS:
        raise TooLarge(f"the {name}", len(value), MAX_ANSWER_CHARS, "store it with put, and name it here")


def _name(argument: str, name: str) -> str:
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise InvalidArgument(argument, f"a name of at most {MAX_NAME_CHARS} printable characters is needed")
    encode(name)
    return name
