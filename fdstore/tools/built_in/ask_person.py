"""`ask_person`: ask a person, and go on when there is an answer, days later too."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.results.context import Context
from fdstore.results.people_config import ASK_PERSON
from fdstore.results.tool_outcome import Started, ToolOutcome
from fdstore.tools.arguments import Arguments, Fd
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Operation, new_op


class AskPerson(Arguments, frozen=True, kw_only=True):
    question: Annotated[str, msgspec.Meta(description="What the person is to decide, in full.")]
    choices: Annotated[
        tuple[str, ...], msgspec.Meta(description="Answers to choose from; the person may give another.")
    ] = ()
    fd: Annotated[Fd, msgspec.Meta(description="A stored text, or a part, that the question is about.")] = (
        None
    )

    @staticmethod
    def hidden(context: Context | None) -> frozenset[str]:
        return frozenset() if context is None or context.fds_on else frozenset({"fd"})


def run(context: Context, arguments: AskPerson, call_id: str | None) -> Operation[ToolOutcome]:
    from fdstore.tools.asking import ask_question, show_answer  # needed by calls alone

    slot = call_id or new_op()
    asked = yield from ask_question(context, arguments.question, arguments.choices, arguments.fd, slot)
    return asked if isinstance(asked, Started) else (yield from show_answer(context, asked, slot))


def describe(context: Context) -> str:
    return (
        "Ask a person a question, and get the answer; that may take long. Ask only what you cannot find out, "
        "all of it at once."
    )


def explain(context: Context) -> str:
    about = ', fd="fd:1"' if context.fds_on else ""
    return (
        "# People\n"
        f'ask_person(question="Which of the two?", choices=["the first", "the second"]{about}) waits for the '
        "answer of a person, who sees only the question, its choices"
        + (" and the text that fd names." if context.fds_on else ".")
    )


TOOL = Tool(
    name=ASK_PERSON,
    title="Ask a person",
    position=105,
    works_on="processes",
    effect="adds",
    resumes=True,
    arguments=AskPerson,
    describe=describe,
    explain=explain,
    run=run,
)
