"""A tree of agents with a deterministic answer.

    root     makes a long text, spawns two readers on it, reads both answers, ends with their digest
    reader   reads its text, spawns a leaf, ends with a long answer that contains both
    leaf     ends with a few words

The model's answers depend only on the conversation, so an agent that was resumed any number of times must
end with the same answer as an undisturbed one.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from fdstore.client import Process, Store
from fdstore.testing import Reply, Request, call, say, slow, turn
from tests.chaos.agents import launch, write_program

LINES = 3000
ANSWER_LINES = 900
PROCESSES = 5
TURNS = {"root": 4, "reader": 3, "leaf": 1}
QUERIES = ("north", "south")

_SECTIONS = """
[tools]
enabled = ["read_fd", "spawn"]
python = ["agent_tools:numbered"]
[limits]
max_losses = 1000
"""


class AgentTree:
    """The programs and the script of their model; each answer takes `pace_s` seconds."""

    def __init__(self, folder: Path, pace_s: float) -> None:
        self._folder = folder
        self._pace_s = pace_s
        for name, linked in {"root": "reader", "reader": "leaf", "leaf": None}.items():
            link = f'[linked_programs]\n{linked} = "{linked}.toml"\n' if linked else ""
            write_program(folder, name, _SECTIONS + link)

    @property
    def script(self) -> dict[str, object]:
        return {"You are ROOT": self._root, "You are READER": self._reader, "You are LEAF": self._leaf}

    def launch(self, store: Store) -> Process:
        """Launch a root for the workers to run."""
        return launch(store, self._folder / "root.toml", "compare them")

    def _delay(self, reply: Reply) -> Reply:
        return slow(reply, self._pace_s) if self._pace_s and not hasattr(reply, "seconds") else reply

    def _root(self, request: Request) -> Reply:
        results = request.tool_results()
        match request.turn_number:
            case 0:
                reply = call("numbered", count=LINES)
            case 1:
                made = _fd_in(results[0].text)
                reply = turn(
                    *(
                        call("spawn", program_name="reader", query=query, additional_preload_fds=[made])
                        for query in QUERIES
                    )
                )
            case 2:
                reply = turn(
                    *(call("read_fd", fd=_fd_in(result.text), read_all=True) for result in results[1:3])
                )
            case _:
                reply = say(digest("".join(_body(result.text) for result in results[3:5])))
        return self._delay(reply)

    def _reader(self, request: Request) -> Reply:
        query = _query(request)
        results = request.tool_results()
        match request.turn_number:
            case 0:
                reply = call("read_fd", fd=_fd_in(request.system), mode="line", start=len(query), count=2)
            case 1:
                reply = call("spawn", program_name="leaf", query=f"leaf of {query}")
            case _:
                reply = say(long_answer(query, _body(results[0].text), _body(results[1].text)))
        return self._delay(reply)

    def _leaf(self, request: Request) -> Reply:
        return self._delay(say(f"seen by {_query(request)}"))


def long_answer(query: str, read: str, leaf: str) -> str:
    return "".join(f"{query} {number}: {read.strip()}; {leaf}\n" for number in range(ANSWER_LINES))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def expected_answer() -> str:
    """Return the root's answer in an undisturbed run."""
    lines = [f"{number} of {LINES}\n" for number in range(1, LINES + 1)]
    answers = []
    for query in QUERIES:
        read = "".join(lines[len(query) - 1 : len(query) + 1])
        answers.append(long_answer(query, read, f"seen by leaf of {query}"))
    return digest("".join(answers))


def _query(request: Request) -> str:
    content = request.messages[0]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def _fd_in(text: str) -> str:
    found = re.search(r'fd="(fd:\d+)"', text)
    assert found, text[:500]
    return found.group(1)


def _body(text: str) -> str:
    """Return the body of the outermost element."""
    return text[text.index(">\n") + 2 : text.rindex("\n</")]
