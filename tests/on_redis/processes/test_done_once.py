"""Run-once effects happen once, wherever an attempt is lost; unknown outcomes are errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fdstore
import fdstore.aio
from fdstore import FDConfig, Toolset, TreeLimits
from fdstore.client import Process, Store
from fdstore.errors import FDStoreError
from fdstore.testing import call, say
from fdstore.wire.operation import Operation
from tests.elements import only
from tests.on_redis.running_agents import running
from tests.waiting import PATIENCE_S, wait_until

sent: list[str] = []
may_end = threading.Event()


@pytest.fixture(autouse=True)
def reset_mail() -> Iterator[None]:
    sent.clear()
    may_end.clear()
    yield
    may_end.set()


@fdstore.tool(repeatable=False)
def send_mail(to: str) -> str:
    """Send a mail, slowly."""
    sent.append(to)
    assert may_end.wait(PATIENCE_S)
    return f"sent to {to}"


@fdstore.tool(repeatable=False)
def post(words: str) -> str:
    """Post something."""
    sent.append(words)
    return f"posted {words}"


def start_thread(run: Any) -> threading.Thread:
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


# tools of the user


def test_a_run_once_tool_is_not_repeated_after_a_lost_attempt(store: Store, tmp_path: Path) -> None:
    script = [call("send_mail", to="ann", id="toolu_a"), say("I will look.")]
    with running(store, script, tmp_path) as agents:
        agents.launch(python=(f"{__name__}:send_mail",))
        endings: list[Any] = []
        first = start_thread(lambda: endings.append(agents.attempt("solo")))
        wait_until(lambda: sent == ["ann"])
        agents.lose("solo")

        assert agents.attempt("solo") == "ended"

        may_end.set()
        first.join(PATIENCE_S)
        [result] = agents.results()
        error = only(result.content)
    assert sent == ["ann"]
    assert endings == ["lost"]
    assert (error["type"], result.is_error) == ("unknown_outcome", True)
    assert error.message == (
        "outcome unknown: this call of send_mail was begun by an earlier attempt, which left no result; "
        "it was not done again. Look whether it took effect before you call it again"
    )


def test_a_call_without_an_id_runs_a_run_once_tool_each_time(proc: Process) -> None:
    tools = Toolset(proc, python=[post])

    for _ in range(2):
        tools.call("post", {"words": "a"})

    assert sent == ["a", "a"]


def test_a_call_refused_for_its_arguments_can_be_repeated(proc: Process) -> None:
    tools = Toolset(proc, python=[post])

    refused = tools.call("post", {"words": "{{fd:1}}"}, call_id="toolu_1")
    proc.create("x")
    again = tools.call("post", {"words": "{{fd:1}}"}, call_id="toolu_1")

    assert only(refused.content)["type"] == "not_found"
    assert (again.content, sent) == ("posted x", ["x"])


def test_one_of_two_concurrent_callers_with_one_id_runs_the_tool(proc: Process) -> None:
    tools = Toolset(proc, python=[send_mail])
    answers: list[Any] = []
    first = start_thread(lambda: answers.append(tools.call("send_mail", {"to": "ann"}, call_id="toolu_1")))
    wait_until(lambda: sent == ["ann"])

    meanwhile = tools.call("send_mail", {"to": "ann"}, call_id="toolu_1")
    may_end.set()
    first.join(PATIENCE_S)
    afterwards = tools.call("send_mail", {"to": "ann"}, call_id="toolu_1")

    assert only(meanwhile.content)["type"] == "unknown_outcome"
    assert [answer.content for answer in (*answers, afterwards)] == ["sent to ann"] * 2
    assert sent == ["ann"]


def test_a_cancelled_awaitable_call_is_not_repeated(awaited: Any) -> None:
    async def call_twice(proc: fdstore.aio.Process) -> str:
        tools = fdstore.aio.Toolset(proc, python=[send_mail])
        calling = asyncio.create_task(tools.call("send_mail", {"to": "ann"}, call_id="toolu_1"))
        await asyncio.to_thread(wait_until, lambda: sent == ["ann"])
        calling.cancel()
        await asyncio.wait([calling])
        assert calling.cancelled()
        again = await tools.call("send_mail", {"to": "ann"}, call_id="toolu_1")
        may_end.set()  # or the end of the event loop would wait for the thread of the first call
        return again.content

    shown = awaited(call_twice)

    assert only(shown)["type"] == "unknown_outcome"
    assert sent == ["ann"]


def test_the_error_for_unstorable_output_says_that_the_tool_ran(store: Store) -> None:
    small = store.process("small", limits=TreeLimits(tree_bytes=10))
    tools = Toolset(small, python=[post], config=FDConfig(max_direct_output_chars=5))

    results = [tools.call("post", {"words": "a long story"}, call_id="toolu_1") for _ in range(2)]

    message, _, error = results[0].content.partition("\n")
    assert message == "post has run, and its output could not be stored"
    assert only(error)["type"] == "quota_exceeded"
    assert results[0] == results[1]
    assert results[0].is_error
    assert sent == ["a long story"]


# files


OPTIONS = {
    "append": {"mode": "append"},
    "append to an old one": {"mode": "append", "create": False},
    "a new one": {"exist_ok": False},
    "append to a new one": {"mode": "append", "exist_ok": False},
    "a write": {},
    "a write over an old one": {"create": False},
}


@pytest.mark.parametrize("options", OPTIONS)
def test_a_file_is_written_once_wherever_the_attempt_was_interrupted(
    store: Store, proc: Process, tmp_path: Path, dropped_after: Any, options: str
) -> None:
    proc.create("new\n")
    path = tmp_path / "out.txt"
    arguments = {"fd": "fd:1", "file_path": "out.txt", **OPTIONS[options]}
    answers = set()
    steps = 0
    lost = True
    while lost:
        steps += 1
        path.unlink(missing_ok=True)
        if "old" in options:
            path.write_text("old\n")
        toolbox = Toolset(proc, enabled=["fd_to_file"], export_root=tmp_path)._toolbox
        call_id = f"toolu_{steps}"

        lost = store.run(dropped_after(toolbox.start("fd_to_file", arguments, call_id), steps))
        result = store.run(toolbox.start("fd_to_file", arguments, call_id))

        assert not result.is_error, result.content
        assert path.read_text() == ("old\n" if "append to an old" in options else "") + "new\n"
        answers.add(result.content)
    assert steps > 6
    assert len(answers) == 1


def interrupt_after(operation: Operation[Any], requests: int) -> Operation[tuple[bool, Any]]:
    """Serve this many requests; return whether there are more, and an operation that continues."""
    reply: Any = None
    try:
        for _ in range(requests):
            reply = yield operation.send(reply)
    except StopIteration:
        return False, None
    return True, continue_operation(operation, reply)


def continue_operation(operation: Operation[Any], reply: Any) -> Operation[Any]:
    try:
        request = operation.send(reply)
        while True:
            try:
                reply = yield request
            except FDStoreError as error:
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as done:
        return done.value


@pytest.mark.parametrize("mode", ["write", "append"])
@pytest.mark.parametrize("old", [None, "old\n"])
def test_a_stalled_attempt_does_not_overwrite_a_newer_file(
    store: Store, proc: Process, tmp_path: Path, mode: str, old: str | None
) -> None:
    proc.create("of the call\n")
    proc.create("newer\n")
    path = tmp_path / "out.txt"
    steps = 0
    stalled = True
    while stalled:
        steps += 1
        path.unlink(missing_ok=True)
        if old is not None:
            path.write_text(old)
        tools = Toolset(proc, enabled=["fd_to_file"], export_root=tmp_path)
        arguments = {"fd": "fd:1", "file_path": "out.txt", "mode": mode}
        start = tools._toolbox.start

        call_id = f"toolu_{steps}"
        stalled, rest = store.run(interrupt_after(start("fd_to_file", arguments, call_id), steps))
        again = store.run(start("fd_to_file", arguments, call_id))
        newer = tools.call("fd_to_file", {**arguments, "fd": "fd:2", "mode": "write"}, f"{call_id}_newer")
        if stalled:
            store.run(rest)

        assert not again.is_error, again.content
        assert not newer.is_error, newer.content
        assert path.read_text() == "newer\n", f"after {steps} requests"
        assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]
    assert steps > 6


def test_a_completed_file_write_is_not_repeated_over_later_changes(
    store: Store, proc: Process, tmp_path: Path, dropped_after: Any
) -> None:
    proc.create("of the call\n")
    tools = Toolset(proc, enabled=["fd_to_file"], export_root=tmp_path)
    arguments = {"fd": "fd:1", "file_path": "out.txt"}
    path = tmp_path / "out.txt"
    steps = 0
    while not path.exists():
        steps += 1
        assert store.run(
            dropped_after(tools._toolbox.start("fd_to_file", arguments, f"toolu_{steps}"), steps)
        )
    (tmp_path / "edited").write_text("a person's\n")
    (tmp_path / "edited").replace(path)

    again = tools.call("fd_to_file", arguments, call_id=f"toolu_{steps}")

    assert (only(again.content)["type"], again.is_error) == ("unknown_outcome", True)
    assert path.read_text() == "a person's\n"


def test_an_append_to_a_file_replaced_meanwhile_has_an_unknown_outcome(
    store: Store, proc: Process, tmp_path: Path, dropped_after: Any
) -> None:
    proc.create("new\n")
    tools = Toolset(proc, enabled=["fd_to_file"], export_root=tmp_path)
    arguments = {"fd": "fd:1", "file_path": "out.txt", "mode": "append"}
    start = tools._toolbox.start
    steps = 0
    while not (tmp_path / "out.txt").exists():
        steps += 1
        assert store.run(dropped_after(start("fd_to_file", arguments, f"toolu_{steps}"), steps))
    tools.call("fd_to_file", arguments, call_id="toolu_of_another")

    again = tools.call("fd_to_file", arguments, call_id=f"toolu_{steps}")

    error = only(again.content)
    assert (error["type"], again.is_error) == ("unknown_outcome", True)
    assert error.message.startswith("outcome unknown: this append to 'out.txt' was begun")
    assert (tmp_path / "out.txt").read_text() == "new\nnew\n"


def test_a_failed_call_can_be_repeated(proc: Process, tmp_path: Path) -> None:
    proc.create("new\n")
    tools = Toolset(proc, enabled=["fd_to_file"], export_root=tmp_path)
    arguments = {"fd": "fd:1", "file_path": "out.txt", "mode": "append", "create": False}

    refused = tools.call("fd_to_file", arguments, call_id="toolu_1")
    (tmp_path / "out.txt").write_text("old\n")
    again = tools.call("fd_to_file", arguments, call_id="toolu_1")

    assert only(refused.content)["type"] == "file_not_found"
    assert not again.is_error
    assert (tmp_path / "out.txt").read_text() == "old\nnew\n"
