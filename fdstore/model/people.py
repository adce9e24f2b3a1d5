"""Questions to a person, and their answers: what agents ask and wait for.

A question is the model's own (`ask_person`), or asks whether a call of a tool may run (an approval). Its text
comes from a model, so a screen shows it as it shows any text of a model: escaped.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from fdstore.model.msgspec_types import prepare
from fdstore.model.records import MAX_MOMENT_S, Moment, Ordinal, Record

OnTimeout = Literal["deny", "fail"]
"""What follows when nobody answers in time: the call is denied, or the process fails."""

QuestionKind = Literal["question", "approval"]

MAX_QUESTION_CHARS = 10_000
MAX_CHOICES = 20
MAX_CHOICE_CHARS = 500
MAX_ANSWER_CHARS = 1_000_000
MAX_NAME_CHARS = 100
"""Of the name of who answers, and of the door."""


class Question(Record, frozen=True, kw_only=True):
    """An open question of a process to a person.

    number      its number among the questions of the process; with `process` it identifies the question
    kind        "question": `text` is what the model asks; "approval": may `tool` run with `arguments`?
    text        the question; "" of an approval
    choices     the answers to choose from, counted from 1; () for a free answer
    fd          a descriptor of the process that the question is about
    tool        the tool that waits for approval
    arguments   the arguments it will run with: references in them stand for their texts already
    in_code     whether the code of a program made the call
    call        the call of the conversation that asks, as in the journal: "turn3:toolu_1"
    program     the program of the process
    asked_at    when it was asked
    until       when its time is over
    on_timeout  what follows then
    """

    process: str
    number: Ordinal
    kind: QuestionKind
    text: str = ""
    choices: tuple[str, ...] = ()
    fd: str | None = None
    tool: str = ""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    in_code: bool = False
    call: str = ""
    program: str | None = None
    asked_at: Moment
    until: Moment
    on_timeout: OnTimeout = "deny"

    @property
    def tree(self) -> str:
        """The tree of its process."""
        return self.process.partition(".")[0]


class AskingProcess(Record, frozen=True, kw_only=True):
    """A process with `questions` open questions to a person."""

    process: str
    questions: int


_Milliseconds = Annotated[int, msgspec.Meta(ge=0, lt=1000 * MAX_MOMENT_S)]


class PersonAnswer(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a question to a person, which is final.

    how        "answer"; "timeout": nobody answered in time; "withdrawn": nothing waits for it any more
    by         who answered, `door` by which way: "cli", "python", "inspector", ...
    at_ms      when, by Redis, in milliseconds
    text       the answer to a question
    choice     the number of the chosen answer, from 1; `text` has its words
    approved   of an approval: whether the call may run
    reason     why it may not
    arguments  the arguments that it runs with, if the person changed them (`is_changed`)
    """

    how: Literal["answer", "timeout", "withdrawn"] = "answer"
    by: str = ""
    door: str = ""
    at_ms: _Milliseconds = 0
    text: str = ""
    choice: Ordinal | None = None
    approved: bool | None = None
    reason: str = ""
    arguments: dict[str, Any] | None = None

    @property
    def is_changed(self) -> bool:
        """Whether the person changed the arguments of the call."""
        return self.arguments is not None


class GivenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says to a question, before it is compared with the question.

    question      its number, if the process asks several
    text, choice  of a question: a text, or one of its `choices`, by its number from 1
    approve       of an approval: whether the call may run; `reason` says why not, to the model
    arguments     what the call is to run with instead of what was asked; the model is told
    by, door      who answers, and by which way: in the journal, the log and the export
    """

    question: int | None = None
    text: str | None = None
    choice: int | None = None
    approve: bool | None = None
    reason: str = ""
    arguments: dict[str, Any] | None = None
    by: str = ""
    door: str = "python"


prepare(Question, PersonAnswer)
