"""Ask the person at this terminal what an agent asks, while it runs here or is watched.

Lines are read in pieces of time, so that the prompt ends with the agent, or when somebody else has answered.
Without a terminal each question is said once, with the command that answers it.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import click

from fdstore.cli import output
from fdstore.cli.questions import parse_arguments, question_lines, said, user_name
from fdstore.errors import FDStoreError

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.model.people import Question

LOOK_EVERY_S = 0.5

_ASKS_YES = "May it run? [y]es, [n]o, [e]dit the arguments, or Enter to leave it: "


class PersonPrompt:
    """Asks about the questions of a tree, one after the other."""

    def __init__(self, store: Store, tree: str) -> None:
        self._store = store
        self._tree = tree
        self._over = Event()
        self._seen: set[tuple[str, int]] = set()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Ask while the block runs."""
        thread = Thread(target=self._keep, name="person prompt", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join(5.0)

    def _keep(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            # the watched program itself reports an absent store
            with suppress(FDStoreError):
                for question in self._open():
                    if (question.process, question.number) not in self._seen:
                        self._ask(question)

    def _open(self) -> list[Question]:
        from fdstore.store.processes import people

        return self._store.run(people.open_questions(self._store.prefix, self._tree)).questions

    def _ask(self, question: Question) -> None:
        from fdstore.store.clock import redis_now

        for line in question_lines(question, self._store.run(redis_now())):
            output.say(line)
        self._seen.add((question.process, question.number))
        if not (output.stdin_is_terminal() and output.stderr_is_terminal()):
            return
        given = self._approval(question) if question.kind == "approval" else self._answer(question)
        if given is None:
            return
        from fdstore.agents.runtime.waker import answer_and_wake
        from fdstore.model.people import GivenAnswer

        answered = GivenAnswer(question=question.number, by=user_name(), door="terminal", **given)
        try:
            done = answer_and_wake(self._store, question.process, answered)
        except FDStoreError as error:  # asked again, if it is open still
            self._seen.discard((question.process, question.number))
            output.say(f"fdstore: {error.type}: {error}")
        else:
            output.say(f"fdstore: {question.process}: {said(done)}")

    def _answer(self, question: Question) -> dict[str, Any] | None:
        """Return the answer to a question of the model, or None to leave it."""
        hint = "A number chooses; " if question.choices else ""
        line = self._line(f"{hint}Enter leaves it to others. Answer: ", question)
        if not line:
            return None
        if question.choices and line.isascii() and line.isdigit():
            return {"choice": int(line[:9])}
        return {"text": line}

    def _approval(self, question: Question) -> dict[str, Any] | None:
        """Return the yes or no to a call, or None to leave it."""
        while True:
            line = self._line(_ASKS_YES, question)
            match (line or "").lower():
                case "":
                    return None
                case "y" | "yes":
                    return {"approve": True}
                case "n" | "no":
                    reason = self._line("Why not? Enter gives no reason: ", question)
                    return None if reason is None else {"approve": False, "reason": reason}
                case "e" | "edit":
                    try:
                        return {"approve": True, "arguments": edited(question.arguments)}
                    except (click.ClickException, OSError) as error:
                        output.say(f"fdstore: {error}")

    def _line(self, prompt: str, question: Question) -> str | None:
        """Return a line that the person types; None if the question is over, or the input is. What was typed
        before the prompt, perhaps to a question that is over, answers nothing."""
        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        output.prompt(prompt)
        looked = time.monotonic()
        while not self._over.is_set():
            ready, _, _ = select.select([sys.stdin.fileno()], [], [], LOOK_EVERY_S)
            if ready:
                line = os.read(sys.stdin.fileno(), 65_536).decode("utf-8", "replace")
                if not line:
                    self._over.set()
                    return None
                return line.strip()
            if time.monotonic() - looked > 2 * LOOK_EVERY_S:
                looked = time.monotonic()
                still_open = {(each.process, each.number) for each in self._open()}
                if (question.process, question.number) not in still_open:
                    output.say("")
                    output.say("fdstore: the question is answered, withdrawn or timed out")
                    return None
        output.say("")
        return None


def edited(arguments: dict[str, Any]) -> dict[str, Any]:
    """Let the person change arguments in $VISUAL or $EDITOR. Return them. Raises `UsageError`."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="fdstore-") as folder:
        file = Path(folder, "arguments.json")
        file.write_text(json.dumps(arguments, ensure_ascii=False, indent=2) + "\n", "utf-8")
        try:
            if subprocess.run([*shlex.split(editor), str(file)], check=False).returncode:
                raise click.UsageError(f"{editor} failed; the arguments are as they were")
            text = file.read_text("utf-8")
        except ValueError as error:  # an open quote in the variable, or a file that is not text
            raise click.UsageError(f"{editor}: {error}; the arguments are as they were") from error
    return parse_arguments(text)


def asking_here(store: Store, process: str) -> AbstractContextManager[object]:
    """Return a context manager in whose block the questions of a process's tree are asked here."""
    if sys.stdin is None or sys.stderr is None:
        return nullcontext()
    return PersonPrompt(store, process.partition(".")[0]).kept()
