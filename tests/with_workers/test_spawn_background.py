"""Children in the background, whose text is read while they write it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fdstore
from fdstore.testing import call, held, say, turn
from tests.waiting import PATIENCE_S, wait_until
from tests.with_workers.agent_harness import AgentHarness


def background(harness: AgentHarness, **more: Any) -> fdstore.Toolset:
    """A custom loop that spawns `speaker` in the background; its text is fd:1."""
    harness.program("speaker")
    proc = harness.store.process("own-loop")
    tools = fdstore.Toolset(
        proc,
        enabled=["spawn", "read_fd", "wait", "pipe"],
        programs={"speaker": harness.folder / "speaker.toml"},
        commands=["tr"],
    )
    result = tools.call(
        "spawn", {"program_name": "speaker", "query": "Speak.", "background": True}, "toolu_1"
    )
    assert result.content == (
        '<process_result process="own-loop.1" program="speaker" state="ready" fd="fd:1"/>'
    )
    return tools


def test_the_text_of_a_background_child_is_followed_live_and_ends_with_the_child(
    harness: AgentHarness,
) -> None:
    release = threading.Event()
    harness.set_script(
        {"SPEAKER": [turn(say("I look."), call("lines", count=3)), held(say("abcdef"), 4, release)]}
    )
    tools = background(harness)
    harness.start_worker()
    proc = harness.store.process("own-loop")
    heard: list[str] = []

    with ThreadPoolExecutor(1) as threads:
        following = threads.submit(lambda: heard.extend(proc.follow("fd:1")))
        wait_until(lambda: "".join(heard) == "I look.\n\nab")
        read = tools.call("read_fd", {"fd": "fd:1"}).content
        release.set()
        following.result(PATIENCE_S)

    assert 'state="open" eof="false">\nI look.\n\nab\n' in read
    assert "".join(heard) == "I look.\n\nabcdef"
    assert proc.stat("fd:1").exit_code == 0
    waited = tools.call("wait", {"target": "fd:1"}).content
    assert waited.endswith('state="exited" exit_code="0" fd="fd:1">\nabcdef\n</process_result>')


def test_a_pipeline_reads_what_an_agent_is_still_writing(harness: AgentHarness) -> None:
    release = threading.Event()
    harness.set_script({"SPEAKER": [held(say("abcdef"), 4, release)]})
    tools = background(harness)
    harness.start_worker(2, "threads", "--unsandboxed-commands")
    piped = tools.call("pipe", {"commands": ["tr a-f A-F"], "in_fd": "fd:1"}, "toolu_2").content
    assert 'fd="fd:2"' in piped
    proc = harness.store.process("own-loop")
    wait_until(lambda: harness.record("own-loop.2").state == "running")

    release.set()

    assert "".join(proc.follow("fd:2")) == "ABCDEF"
