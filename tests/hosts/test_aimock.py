"""aimock, which plays the servers of models: a judge that others wrote, of the three APIs that agents speak.

The scripted model of `fdstore.testing` and the clients come from one hand, so that both could be wrong alike.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from fdstore.local.redis_server import PrivateServer
from tests.children import Child
from tests.dialects import DIALECTS
from tests.hosts.conftest import HOST_S
from tests.waiting import wait_until

NEEDLE = "a needle, well hidden"
HAY = "".join(f"{NEEDLE if n == 1000 else 'a line'}\n" for n in range(1, 2001))
CALLS = [
    {"name": "search_fd", "arguments": {"fd": "fd:1", "pattern": "needle"}},
    {"name": "read_fd", "arguments": {"fd": "fd:1#L1000"}},
]
QUESTION = {"userMessage": "Where is the needle?", "hasToolResult": False}
RESULT = {"hasToolResult": True, "toolResultContains": NEEDLE}
ANSWERS = (
    (QUESTION, {"content": "I look.", "toolCalls": CALLS}),
    (RESULT, {"content": "It is in line 1000."}),
)
FAULTS = {
    "the model answered 500 server_error": {"chaos": {"dropRate": 1}},
    "the model could not be reached: Server disconnected": {"chaos": {"disconnectRate": 1}},
    "the model could not be reached: peer closed connection": {
        "truncateAfterChunks": 6,
        "chunkSize": 2,
        "latency": 5,
    },
    "the model answered 429 rate_limit_error": {
        "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429}
    },
}
"""What is said of a request that fails, and how aimock makes it fail."""


class Ran(NamedTuple):
    code: int
    answer: str
    said: str
    requests: list[dict[str, Any]]
    """What the judge was sent."""


Run = Callable[..., Ran]


def script(faults: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the answers, before each of which requests fail with these faults, one after the other."""
    lines = []
    for match, response in ANSWERS:
        for number, fault in enumerate(faults):
            lines.append({"match": {**match, "sequenceIndex": number}, "response": response, **fault})
        lines.append({"match": match, "response": response})
    return {"fixtures": lines}


@pytest.fixture
def run(node: Path, node_packages: Path, tmp_path: Path) -> Iterator[Run]:
    """Runs an agent by the API of a provider, on an aimock with these faults and options."""
    with ExitStack() as held:
        store = held.enter_context(PrivateServer())

        def ran(provider: str, faults: Sequence[dict[str, Any]] = (), *options: str) -> Ran:
            (tmp_path / "answers.json").write_text(json.dumps(script(faults)))
            cli = node_packages / "@copilotkit" / "aimock" / "dist" / "cli.js"
            log = tmp_path / "aimock.log"
            with log.open("wb") as output:
                command = [node, cli, "--port", "0", "--fixtures", tmp_path / "answers.json", *options]
                judge = held.enter_context(Child(list(map(str, command)), stdout=output, stderr=output))
            held.callback(judge.terminate)
            pattern = re.compile(r"listening on (http\S+)")
            wait_until(lambda: pattern.search(log.read_text()) is not None, what="aimock is listening")
            url = pattern.findall(log.read_text())[0]
            (tmp_path / "hay.txt").write_text(HAY)
            (tmp_path / "agent.toml").write_text(f"""
[program]
name = "finder"
[model]
name = "judge"
provider = "{provider}"
base_url = "{url}{DIALECTS[provider].path}"
[prompt]
system = "Answer."
[preload]
files = ["hay.txt"]
[tools]
enabled = ["read_fd", "search_fd"]
""")
            words = [sys.executable, "-m", "fdstore", "--url", store.url, "run", "agent.toml"]
            done = subprocess.run(
                [*words, "-p", "Where is the needle?"],
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=HOST_S,
                check=False,
            )
            journal = httpx2.get(f"{url}/__aimock/journal").json()
            return Ran(done.returncode, done.stdout, done.stderr, journal)

        yield ran


@pytest.mark.parametrize("provider", DIALECTS)
def test_an_agent_calls_two_tools_at_once_and_answers(run: Run, provider: str) -> None:
    ran = run(provider)

    assert (ran.code, ran.answer) == (0, "It is in line 1000.\n"), ran.said
    first, second = ran.requests
    assert [each["response"]["status"] for each in (first, second)] == [200, 200]
    assert NEEDLE not in json.dumps(first["body"])
    assert json.dumps(second["body"]).count(NEEDLE) == 2, "both results are sent"


@pytest.mark.parametrize("provider", DIALECTS)
def test_what_fails_is_asked_again_and_the_answer_is_the_same(run: Run, provider: str) -> None:
    ran = run(provider, list(FAULTS.values()))

    assert (ran.code, ran.answer) == (0, "It is in line 1000.\n"), ran.said
    assert len(ran.requests) == 2 * (len(FAULTS) + 1)
    for what in FAULTS:
        assert ran.said.count(what) == 2, ran.said


@pytest.mark.parametrize("provider", DIALECTS)
def test_what_is_no_answer_ends_the_agent_with_what_came(run: Run, provider: str) -> None:
    ran = run(provider, [], "--chaos-malformed", "1")

    assert (ran.code, ran.answer) == (1, "")
    assert "the server answered 200 with application/json, not with a stream of events" in ran.said
    assert len(ran.requests) == 1
