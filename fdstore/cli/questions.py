"""The verbs questions and answer: what agents ask a person, and the answers."""

from __future__ import annotations

import getpass
import json
import shlex
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, verb
from fdstore.cli.tables import Table, key, number, reason
from fdstore.text.layout import show_controls
from fdstore.text.quantities import duration, format_count

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.model.people import PersonAnswer, Question
    from fdstore.store.processes.people import OpenQuestions

LOOK_EVERY_S = 1.0

SHOWN_CHARS = 4000
"""Of a question or its arguments; `fdstore questions --json` has all."""

TABLE = Table((key("PROCESS"), number("QUESTION"), number("WAITS"), reason("ASKS")))


@verb
@click.argument("tree", metavar="[TREE]", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with each new question until Ctrl-C.")
def questions(session: CliSession, tree: str | None, follow: bool) -> None:
    """Show the questions of agents that wait for a person, oldest first: of TREE or of all trees.

    Of each it says how to answer. With --json a document has the whole question, with the arguments of a call
    as they will run.
    """
    with session.store(use="look") as store:
        found = _find(store, tree)
        if session.as_json:
            output.documents(found.questions)
        elif follow:
            for each in found.questions:
                _print(each, _now(store))
        else:
            _print_table(found.questions, _now(store))
        output.report_unreadable(found.unreadable, as_json=session.as_json)
        known = {(each.process, each.number) for each in found.questions}
        if follow:
            output.end_with_reader()
        while follow:
            time.sleep(LOOK_EVERY_S)
            for each in _find(store, tree).questions:
                if (each.process, each.number) in known:
                    continue
                known.add((each.process, each.number))
                if session.as_json:
                    output.document(each)
                else:
                    _print(each, _now(store))


def _find(store: Store, tree: str | None) -> OpenQuestions:
    from fdstore.store.processes import people

    return store.run(people.open_questions(store.prefix, tree))


def _now(store: Store) -> float:
    from fdstore.store.clock import redis_now

    return store.run(redis_now())


def _print_table(found: list[Question], now_s: float) -> None:
    if not found:
        output.note("nobody is asked anything")
        return
    rows = [
        [each.process, str(each.number), duration(now_s - each.asked_at), in_line(each)] for each in found
    ]
    output.table(TABLE, rows)
    if len(found) == 1:
        for line in question_lines(found[0], now_s):
            output.line(line)
    else:
        output.note(f"{format_count(len(found), 'question')}; fdstore answer PROCESS --question N ...")


def _print(question: Question, now_s: float) -> None:
    for line in question_lines(question, now_s):
        output.line(line)
    output.line()


def in_line(question: Question) -> str:
    """Return a question in one line."""
    if question.kind == "question":
        text = question.text
    else:
        text = f"may {question.tool} run with {json.dumps(question.arguments, ensure_ascii=False)}?"
    shown = show_controls(text[: SHOWN_CHARS // 10], keep="")
    return shown if len(text) <= SHOWN_CHARS // 10 else f"{shown}..."


def question_lines(question: Question, now_s: float) -> Iterator[str]:
    """Yield the lines that show a question. What comes from the model stands behind a bar, with its control
    characters escaped, so that it cannot be taken for a line of fdstore."""
    waits = f"for {duration(now_s - question.asked_at)}, {duration(question.until - now_s)} left"
    if question.kind == "approval":
        by = f"{'code of ' if question.in_code else ''}{question.process}"
        yield f"{by} asks whether {question.tool} may run (question {question.number}, {waits}):"
        text = json.dumps(question.arguments, ensure_ascii=False, indent=2)
    else:
        yield f"{question.process} asks (question {question.number}, {waits}):"
        text = question.text
    for line in text[:SHOWN_CHARS].split("\n"):
        yield f"  | {show_controls(line, keep='')}"
    if len(text) > SHOWN_CHARS:
        yield f"  ... {format_count(len(text), 'character')} in all: fdstore questions --json"
    for place, choice in enumerate(question.choices, 1):
        yield f"  {place} | {show_controls(choice, keep='')}"
    if question.fd is not None:
        fd = show_controls(question.fd, keep="")
        yield f"  about {fd}: fdstore read {question.process} {shlex.quote(fd)}"
    yield f"  {how_to_answer(question)}"


def how_to_answer(question: Question) -> str:
    """Return the commands that answer a question."""
    begin = f"fdstore answer {question.process} --question {question.number}"
    if question.kind == "approval":
        return f"{begin} --yes, or --no --reason '...'"
    return f"{begin} 'TEXT'" + (", or --choice N" if question.choices else "")


@verb
@click.argument("process", metavar="PROC")
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--question", "number", type=int, metavar="N", help="Its number, if PROC asks several.")
@click.option("--choice", type=int, metavar="N", help="The answer among the choices, counted from 1.")
@click.option("--yes", is_flag=True, help="The call may run.")
@click.option("--no", is_flag=True, help="It may not run; --reason tells the model why.")
@click.option("--reason", default="", metavar="TEXT", help="Why the call may not run.")
@click.option("--arguments", metavar="JSON", help="With --yes: run the call with these arguments instead.")
@click.option("--as", "by", metavar="NAME", help="Who answers. [default: your user name]")
def answer(
    session: CliSession,
    process: str,
    text: str | None,
    number: int | None,
    choice: int | None,
    yes: bool,
    no: bool,
    reason: str,
    arguments: str | None,
    by: str | None,
) -> None:
    """Answer a question of an agent, which then goes on. The first answer counts; a second one is a
    `conflict`.

    \b
    fdstore answer triage "the blue one"
    fdstore answer triage --choice 2
    fdstore answer triage --yes
    fdstore answer triage --no --reason "not on a Friday"
    """
    from fdstore.agents.runtime.waker import answer_and_wake
    from fdstore.model.people import GivenAnswer

    if yes and no:
        raise click.UsageError("give one of --yes and --no")
    given = None if arguments is None else parse_arguments(arguments)
    answered = GivenAnswer(
        text=text,
        question=number,
        choice=choice,
        approve=yes if yes or no else None,
        reason=reason,
        arguments=given,
        by=user_name() if by is None else by,
        door="cli",
    )
    with session.store() as store:
        done = answer_and_wake(store, process, answered)
    session.show(done, f"{process}: {said(done)}")


def said(done: PersonAnswer) -> str:
    """Return what an answer means for the agent."""
    if done.approved is None:
        return "answered"
    if not done.approved:
        return "denied; the call is not run"
    return "approved, with other arguments" if done.is_changed else "approved"


def parse_arguments(written: str) -> dict[str, Any]:
    """Return arguments that a person wrote. Raises `UsageError`."""
    try:
        found = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--arguments is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise click.UsageError('--arguments must be a JSON object, as \'{"path": "a"}\'')
    return found


def user_name() -> str:
    """Return the name of the user of this machine."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "someone"
    return "".join(char for char in name if char.isprintable())[:100] or "someone"
