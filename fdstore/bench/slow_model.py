"""A scripted model in a process of its own, so that it and what is measured do not share an interpreter.

    python -m fdstore.bench.slow_model ANSWER_S

It plays both models of a program. The one that writes the program finds it in its task, between `<code>` and
`</code>`, answers at once, and ends with the program's result. The one that is asked answers after
`ANSWER_S`; its questions end with `(part 17)`. The process prints its address; then `questions` on stdin
makes it print the questions so far, and a number sets `ANSWER_S`.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from fdstore.bench.child import LineChild, line_child
from fdstore.testing import Reply, Request, ScriptedModel, call, say, slow
from fdstore.testing.requests import text_of
from fdstore.testing.server import API_KEY

CODE = re.compile(r"<code>\n(.*)\n</code>", re.DOTALL)
PART = re.compile(r"\(part (\d+)\)\s*$")


class ArrivedQuestion(msgspec.Struct, frozen=True):
    """A question that arrived: the number of its part, and when, by the monotonic clock."""

    part: int
    at_s: float


class SlowModel:
    """A running process of this module."""

    def __init__(self, child: LineChild, answer_s: float) -> None:
        self._child = child
        self.answer_s = answer_s
        self.base_url = child.hear()

    @property
    def environ(self) -> Mapping[str, str]:
        """Environment variables that direct the SDK to this model."""
        return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": API_KEY}

    def answer_after(self, seconds: float) -> None:
        """Answer further questions after so many seconds."""
        self._child.say(str(seconds))
        self.answer_s = seconds

    def questions(self) -> list[ArrivedQuestion]:
        """Return the questions so far, in order of arrival."""
        self._child.say("questions")
        return msgspec.json.decode(self._child.hear(), type=list[ArrivedQuestion])


@contextmanager
def slow_model(answer_s: float) -> Iterator[SlowModel]:
    """Start a model for the block."""
    with line_child("slow_model", answer_s) as child:
        yield SlowModel(child, answer_s)


class ModelReplies:
    """The replies of both models."""

    def __init__(self, answer_s: float) -> None:
        self.answer_s = answer_s
        self._lock = threading.Lock()
        self._questions: list[ArrivedQuestion] = []

    def reply(self, request: Request) -> Reply:
        text = request.last_text()
        if (part := PART.search(text[-100:])) is not None:
            with self._lock:
                self._questions.append(ArrivedQuestion(int(part[1]), time.monotonic()))
            return slow(say("There is one date."), self.answer_s)
        told = "\n".join(text_of(message.get("content")) for message in request.messages)
        if request.turn_number > 0 or (code := CODE.search(told)) is None:
            return say(text)
        return call("run_python", code=code[1]) if request.tools else say(f"```repl\n{code[1]}\n```")

    def questions(self) -> bytes:
        with self._lock:
            return msgspec.json.encode(self._questions)


def main(answer_s: float) -> None:
    replies = ModelReplies(answer_s)
    with ScriptedModel(replies.reply) as model:
        print(model.base_url, flush=True)
        for line in sys.stdin:
            if line == "questions\n":
                print(replies.questions().decode(), flush=True)
            else:
                replies.answer_s = float(line)


if __name__ == "__main__":
    main(float(sys.argv[1]))
