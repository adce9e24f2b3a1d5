"""The text of a background agent: a stream that others read while it is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fdstore.agents.loop.answer_stream import RETRY_MARKER, open_answer_stream
from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.program_loader import Program
from fdstore.agents.runtime.run_process import AttemptOutcome
from fdstore.client import Store
from fdstore.errors import StreamBroken
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import process_records, processes
from fdstore.store.streams import streams
from fdstore.testing import Request, call, cut, fail, held, say, turn
from tests.dialects import every_dialect
from tests.on_redis.running_agents import SMALL, Agents, running, tool
from tests.waiting import PATIENCE_S, wait_until

pytestmark = every_dialect

SPEAKER = Program(name="speaker", model="any", system="You are SPEAKER.", python=(tool("echo"),))
BACKGROUND = call("spawn", program_name="speaker", query="Speak.", background=True)
TOOLS = ("spawn", "read_fd", "wait", "close_fd", "kill")
FIRST_DELTA = 4
"""Events until the first third of a text has come."""


class Pair:
    """A root that spawns a speaker in the background, and that speaker, each with its own script."""

    def __init__(self, agents: Agents, parts: dict[str, list[Any]]) -> None:
        self.agents = agents
        self.parts = parts
        self.root = agents.launch(tools=TOOLS, others=(SPEAKER,), file_descriptor=SMALL)  # its counter is 1

    def run_root(self) -> None:
        """Run the root until it ends or waits."""
        self.agents.attempt("solo")

    def run_speaker_attempt(self) -> AttemptOutcome:
        return self.agents.attempt("solo.1")

    @property
    def text(self) -> str:
        return "".join(self.root.follow("fd:1"))

    @property
    def partial_text(self) -> str:
        return self.root.read("fd:1", read_all=True).text


@pytest.fixture
def pair(store: Store, tmp_path: Path) -> Iterator[Pair]:
    parts: dict[str, list[Any]] = {"SOLO": [BACKGROUND, say("Done.")], "SPEAKER": [say("Hello.")]}

    def script(request: Request) -> Any:
        return parts[request.system.split()[2].rstrip(".")].pop(0)

    with running(store, script, tmp_path) as agents:
        yield Pair(agents, parts)


def run_speaker(threads: ThreadPoolExecutor, pair: Pair, before: str) -> Future[AttemptOutcome]:
    """Run the speaker in another thread and return once its stream holds `before`."""
    attempt = threads.submit(pair.run_speaker_attempt)
    wait_until(lambda: pair.partial_text == before or attempt.done())
    return attempt


def test_a_background_spawn_returns_the_descriptor_of_its_text_immediately(pair: Pair) -> None:
    pair.run_root()

    [result] = pair.agents.results()
    assert result.content == '<process_result process="solo.1" program="speaker" state="ready" fd="fd:1"/>'
    stream = pair.root.stat("fd:1")
    assert (stream.state, stream.source, stream.producer) == ("open", "text of speaker", "solo.1")
    assert pair.agents.record("solo.1").outputs == ("fd:1",)


def test_the_text_of_an_agent_can_be_read_while_it_is_written(
    pair: Pair, threads: ThreadPoolExecutor
) -> None:
    release = threading.Event()
    pair.parts["SPEAKER"] = [held(say("abcdef"), FIRST_DELTA, release)]
    pair.run_root()

    attempt = run_speaker(threads, pair, "ab")
    assert pair.root.stat("fd:1").state == "open"
    release.set()

    assert attempt.result(PATIENCE_S) == "ended"
    assert pair.text == "abcdef"


def test_the_end_of_the_agent_seals_its_stream(pair: Pair) -> None:
    pair.run_root()
    pair.run_speaker_attempt()

    stream = pair.root.stat("fd:1")
    assert (stream.state, stream.exit_code, pair.text) == ("sealed", 0, "Hello.")


def test_the_texts_of_several_answers_are_separated_and_blank_ones_left_out(pair: Pair) -> None:
    pair.parts["SPEAKER"] = [
        turn(say("I look.\n"), call("echo", words="a")),
        turn(say("\n \n"), call("echo", words="b")),
        call("echo", words="c"),
        turn(say("  Found"), say(" it: \ud7ff😀.")),
    ]
    pair.run_root()
    pair.run_speaker_attempt()

    assert pair.text == "I look.\n\n\n  Found it: \ud7ff😀."


def test_a_stream_of_an_agent_that_exits_with_an_error_carries_the_exit_code(pair: Pair) -> None:
    pair.parts["SPEAKER"] = [turn(say("I cannot go"), stop_reason="max_tokens")]
    pair.run_root()
    pair.run_speaker_attempt()

    assert (pair.root.stat("fd:1").exit_code, pair.text) == (1, "I cannot go")


def test_a_failing_agent_breaks_its_stream_with_the_reason(pair: Pair) -> None:
    pair.parts["SPEAKER"] = [
        turn(say("I try."), call("echo", words="a")),
        fail(400, message="no such thing", should_retry=False),
    ]
    pair.run_root()
    pair.run_speaker_attempt()

    with pytest.raises(StreamBroken, match="no such thing"):
        _ = pair.text
    assert pair.partial_text == "I try."


def test_a_killed_agent_breaks_its_stream(pair: Pair, threads: ThreadPoolExecutor) -> None:
    release = threading.Event()
    pair.parts["SOLO"] = [BACKGROUND, call("kill", target="fd:1"), say("Done.")]
    pair.parts["SPEAKER"] = [held(say("abcdef"), FIRST_DELTA, release)]
    pair.agents.attempt("solo", stopping=_After(pair))
    attempt = run_speaker(threads, pair, "ab")
    pair.run_root()
    release.set()

    assert attempt.result(PATIENCE_S) == "lost"
    assert 'state="cancelled" reason="killed" fd="fd:1"' in pair.agents.results()[-1].content
    assert (pair.root.stat("fd:1").reason, pair.partial_text) == ("cancelled", "ab")


class _After:
    """A stop event for an attempt of the root, set once the root has spawned."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    def is_set(self) -> bool:
        return len(self._pair.agents.store.tree("solo").members) > 1


def test_the_stream_says_when_an_interrupted_answer_is_repeated(pair: Pair) -> None:
    pair.parts["SPEAKER"] = [cut(say("abcdef"), FIRST_DELTA), cut(say("never"), 1), say("Hello.")]
    pair.run_root()
    pair.run_speaker_attempt()

    assert pair.text == f"ab{RETRY_MARKER}Hello."


def test_a_later_attempt_continues_the_stream_where_the_lost_attempt_stopped(
    pair: Pair, threads: ThreadPoolExecutor
) -> None:
    release = threading.Event()
    pair.parts["SPEAKER"] = [
        turn(say("One."), call("echo", words="a")),
        held(say("abcdef"), FIRST_DELTA, release),
        say("Two."),
    ]
    pair.run_root()
    attempt = run_speaker(threads, pair, "One.\n\nab")
    pair.agents.lose("solo.1")

    assert pair.run_speaker_attempt() == "ended"
    release.set()

    assert attempt.result(PATIENCE_S) == "lost"
    assert pair.text == f"One.\n\nab{RETRY_MARKER}Two."


def child_with_text(store: Store) -> tuple[ProcessHandle, str]:
    """Return a child of `solo` that writes a text, and the descriptor of the text."""
    parent = store.process("solo").handle
    child = store.run(processes.create_child(parent, [], output=processes.ChildStream("text", 10)))
    [fd] = store.run(process_records.record("fdstore", child.id)).outputs
    return child, fd


@pytest.mark.parametrize("before", ["", "One.\n\n", f"On{RETRY_MARKER}"])
def test_a_later_attempt_appends_the_part_of_the_last_answer_missing_from_the_stream(
    store: Store, before: str
) -> None:
    whole = f"{before}Two."
    last = Assistant(content=[{"type": "text", "text": "Two."}], stop_reason="tool_use", said=len(whole))
    begun = len(before.removesuffix(RETRY_MARKER).removesuffix("\n\n"))

    for kept in range(begun, len(whole) + 1):
        child, fd = child_with_text(store)
        appender = streams.appender_for_output(child, fd, 10)
        appender.put(whole[:kept])
        store.run(appender.store())

        answers = store.run(open_answer_stream(child, fd, last))
        assert answers is not None
        store.run(answers.add("Three."))
        store.run(answers.complete())
        store.run(processes.end(child))

        assert "".join(store.process("solo").follow(fd)) == f"{whole}\n\nThree."


def test_a_character_split_between_two_chunks_of_an_answer_is_stored_whole(store: Store) -> None:
    given = "A \U0001f600\U0001f680 \ud83d and \ude00\ud83d"
    units = given.encode("utf-16-le", "surrogatepass")
    halves = [units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2)]
    shown = "A \U0001f600\U0001f680 \\ud83d and \\ude00\\ud83d"

    for step in (1, 2, 3, 5, len(halves)):
        child, fd = child_with_text(store)
        answers = store.run(open_answer_stream(child, fd, None))
        assert answers is not None
        for at in range(0, len(halves), step):
            store.run(answers.add("".join(halves[at : at + step])))
            store.run(answers.add(""))  # other events in between
        said = answers.chars
        store.run(answers.complete())
        store.run(answers.add("Two."))
        store.run(answers.complete())
        store.run(processes.end(child))

        assert "".join(store.process("solo").follow(fd)) == f"{shown}\n\nTwo."
        assert said == len(shown)


def test_half_a_character_of_an_interrupted_answer_does_not_leak_into_the_next(store: Store) -> None:
    child, fd = child_with_text(store)
    answers = store.run(open_answer_stream(child, fd, None))
    assert answers is not None

    store.run(answers.add("One \ud83d"))
    answers.restart()
    store.run(answers.add("\ude00 Two."))
    store.run(answers.complete())
    store.run(processes.end(child))

    assert "".join(store.process("solo").follow(fd)) == f"One {RETRY_MARKER}\\ude00 Two."


def test_a_parent_that_closes_the_stream_still_gets_the_answer(pair: Pair) -> None:
    pair.parts["SOLO"] = [
        BACKGROUND,
        call("close_fd", fd="fd:1"),
        call("wait", target="solo.1"),
        say("Done."),
    ]
    pair.run_root()
    pair.run_speaker_attempt()
    pair.agents.attempt("solo")

    assert pair.agents.results()[-1].content == (
        '<process_result process="solo.1" program="speaker" state="exited" exit_code="0" fd="fd:1">\n'
        "Hello.\n</process_result>"
    )
    assert pair.agents.store.tree("solo").fds == 0


def test_a_long_answer_that_equals_the_streamed_text_is_stored_once(pair: Pair) -> None:
    long = "word " * 50
    pair.parts["SOLO"] = [BACKGROUND, call("wait", target="fd:1"), say("Done.")]
    pair.parts["SPEAKER"] = [say(long)]
    pair.run_root()
    pair.run_speaker_attempt()
    pair.agents.attempt("solo")

    result = pair.agents.results()[-1].content
    assert result.startswith(
        '<process_result process="solo.1" program="speaker" state="exited" exit_code="0" fd="fd:1">\n'
        '<fd_result fd="fd:1" pages="5"'
    )
    tree = pair.agents.store.tree("solo")
    assert (tree.fds, tree.bytes) == (1, len(long))
    assert pair.text == long


def test_a_long_answer_after_others_gets_its_own_descriptor(pair: Pair) -> None:
    long = "word " * 50
    pair.parts["SOLO"] = [BACKGROUND, call("wait", target="fd:1"), say("Done.")]
    pair.parts["SPEAKER"] = [turn(say("I look."), call("echo", words="a")), say(long)]
    pair.run_root()
    pair.run_speaker_attempt()
    pair.agents.attempt("solo")

    assert '<fd_result fd="fd:2"' in pair.agents.results()[-1].content
    assert pair.root.read("fd:2", read_all=True).text == long
    assert pair.text == f"I look.\n\n{long}"
