"""What an agent says in the background: its text as a stream that others read while it is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fdstore.agent.answer_stream import RETRY_MARKER, open_answer_stream
from fdstore.agent.conversation import Assistant
from fdstore.agent.program_loader import Program
from fdstore.client import Store
from fdstore.errors import StreamBroken
from fdstore.runtime.run_process import Ending
from fdstore.store import process_records, processes, streams
from fdstore.testing import Request, call, cut, fail, held, say, turn
from tests.on_redis.agents import SMALL, Agents, running, tool
from tests.waiting import wait_until

SPEAKER = Program(name="speaker", model="any", system="You are SPEAKER.", python=(tool("echo"),))
BACKGROUND = call("spawn", program_name="speaker", query="Speak.", background=True)
TOOLS = ("spawn", "read_fd", "wait", "close_fd", "kill")
FIRST_DELTA = 4
"""Events until the first third of a text has come."""


class Pair:
    """A root that spawns a speaker in the background, and that speaker. Each says its part."""

    def __init__(self, agents: Agents, parts: dict[str, list[Any]]) -> None:
        self.agents = agents
        self.parts = parts
        self.root = agents.launch(
            tools=TOOLS, others=(SPEAKER,), file_descriptor=SMALL
        )  # its counter stands at 1

    def begin(self) -> None:
        """Lets the root spawn and go on to its end, or to where it waits."""
        self.agents.attempt("solo")

    def speak(self) -> Ending:
        return self.agents.attempt("solo.1")

    @property
    def text(self) -> str:
        return "".join(self.root.follow("fd:1"))

    @property
    def so_far(self) -> str:
        return self.root.read("fd:1", read_all=True).text


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(2)
    yield pool
    pool.shutdown(wait=False)  # an answer that is held is let go when its model closes, after this


@pytest.fixture
def pair(store: Store, tmp_path: Path) -> Iterator[Pair]:
    parts: dict[str, list[Any]] = {"SOLO": [BACKGROUND, say("Done.")], "SPEAKER": [say("Hello.")]}

    def script(request: Request) -> Any:
        return parts[request.system.split()[2].rstrip(".")].pop(0)

    with running(store, script, tmp_path) as agents:
        yield Pair(agents, parts)


def spoken(threads: ThreadPoolExecutor, pair: Pair, before: str) -> Future[Ending]:
    """A speaker in another thread, when its stream holds `before`."""
    attempt = threads.submit(pair.speak)
    wait_until(lambda: pair.so_far == before or attempt.done())
    return attempt


def test_a_background_spawn_answers_at_once_with_the_descriptor_of_its_text(pair: Pair) -> None:
    pair.begin()

    [result] = pair.agents.results()
    assert result.content == '<process_result process="solo.1" program="speaker" state="ready" fd="fd:1"/>'
    stream = pair.root.stat("fd:1")
    assert (stream.state, stream.source, stream.producer) == ("open", "text of speaker", "solo.1")
    assert pair.agents.record("solo.1").outputs == ("fd:1",)


def test_the_text_is_there_while_it_is_written(pair: Pair, threads: ThreadPoolExecutor) -> None:
    release = threading.Event()
    pair.parts["SPEAKER"] = [held(say("abcdef"), FIRST_DELTA, release)]
    pair.begin()

    attempt = spoken(threads, pair, "ab")
    assert pair.root.stat("fd:1").state == "open"
    release.set()

    assert attempt.result(20) == "ended"
    assert pair.text == "abcdef"


def test_the_end_of_the_agent_is_the_end_of_the_stream(pair: Pair) -> None:
    pair.begin()
    pair.speak()

    stream = pair.root.stat("fd:1")
    assert (stream.state, stream.exit_code, pair.text) == ("sealed", 0, "Hello.")


def test_the_texts_of_several_answers_stand_apart_and_blank_ones_do_not_show(pair: Pair) -> None:
    pair.parts["SPEAKER"] = [
        turn(say("I look.\n"), call("echo", words="a")),
        turn(say("\n \n"), call("echo", words="b")),
        call("echo", words="c"),
        turn(say("  Found"), say(" it: \ud7ff😀.")),
    ]
    pair.begin()
    pair.speak()

    assert pair.text == "I look.\n\n\n  Found it: \ud7ff😀."


def test_a_bad_end_is_an_end_with_its_code(pair: Pair) -> None:
    pair.parts["SPEAKER"] = [turn(say("I cannot go"), stop_reason="max_tokens")]
    pair.begin()
    pair.speak()

    assert (pair.root.stat("fd:1").exit_code, pair.text) == (1, "I cannot go")


def test_an_agent_that_fails_breaks_its_text_off_with_the_reason(pair: Pair) -> None:
    pair.parts["SPEAKER"] = [
        turn(say("I try."), call("echo", words="a")),
        fail(400, message="no such thing", should_retry=False),
    ]
    pair.begin()
    pair.speak()

    with pytest.raises(StreamBroken, match="no such thing"):
        _ = pair.text
    assert pair.so_far == "I try."


def test_an_agent_that_is_killed_breaks_its_text_off(pair: Pair, threads: ThreadPoolExecutor) -> None:
    release = threading.Event()
    pair.parts["SOLO"] = [BACKGROUND, call("kill", target="fd:1"), say("Done.")]
    pair.parts["SPEAKER"] = [held(say("abcdef"), FIRST_DELTA, release)]
    pair.agents.attempt("solo", stopping=_After(pair))
    attempt = spoken(threads, pair, "ab")
    pair.begin()
    release.set()

    assert attempt.result(20) == "lost"
    assert 'state="cancelled" reason="killed" fd="fd:1"' in pair.agents.results()[-1].content
    assert (pair.root.stat("fd:1").reason, pair.so_far) == ("cancelled", "ab")


class _After:
    """Stops an attempt of the root once it has spawned."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    def is_set(self) -> bool:
        return len(self._pair.agents.store.tree("solo").members) > 1


def test_an_answer_that_breaks_off_is_said_to_be_given_anew(pair: Pair) -> None:
    pair.parts["SPEAKER"] = [cut(say("abcdef"), FIRST_DELTA), cut(say("never"), 1), say("Hello.")]
    pair.begin()
    pair.speak()

    assert pair.text == f"ab{RETRY_MARKER}Hello."


def test_a_later_attempt_goes_on_where_the_text_of_the_lost_one_breaks_off(
    pair: Pair, threads: ThreadPoolExecutor
) -> None:
    release = threading.Event()
    pair.parts["SPEAKER"] = [
        turn(say("One."), call("echo", words="a")),
        held(say("abcdef"), FIRST_DELTA, release),
        say("Two."),
    ]
    pair.begin()
    attempt = spoken(threads, pair, "One.\n\nab")
    pair.agents.lose("solo.1")

    assert pair.speak() == "ended"
    release.set()

    assert attempt.result(20) == "lost"
    assert pair.text == f"One.\n\nab{RETRY_MARKER}Two."


@pytest.mark.parametrize("before", ["", "One.\n\n", f"On{RETRY_MARKER}"])
def test_a_later_attempt_adds_what_the_stream_lacks_of_the_last_answer(store: Store, before: str) -> None:
    whole = f"{before}Two."
    parent = store.process("solo").handle
    last = Assistant(content=[{"type": "text", "text": "Two."}], stop_reason="tool_use", said=len(whole))
    begun = len(before.removesuffix(RETRY_MARKER).removesuffix("\n\n"))

    for kept in range(begun, len(whole) + 1):
        child = store.run(processes.create_child(parent, [], output=processes.Output("text", 10)))
        [fd] = store.run(process_records.record("fdstore", child.id)).outputs
        appender = streams.appender_for_output(child, fd, 10)
        appender.put(whole[:kept])
        store.run(appender.store())

        answers = store.run(open_answer_stream(child, (fd,), last))
        assert answers is not None
        store.run(answers.add("Three."))
        store.run(answers.complete())
        store.run(processes.end(child))

        assert "".join(store.process("solo").follow(fd)) == f"{whole}\n\nThree."


def test_a_character_that_is_cut_by_two_bits_of_an_answer_is_whole_in_its_text(store: Store) -> None:
    parent = store.process("solo").handle
    given = "A \U0001f600\U0001f680 \ud83d and \ude00\ud83d"
    units = given.encode("utf-16-le", "surrogatepass")
    halves = [units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2)]
    shown = "A \U0001f600\U0001f680 \\ud83d and \\ude00\\ud83d"

    for step in (1, 2, 3, 5, len(halves)):
        child = store.run(processes.create_child(parent, [], output=processes.Output("text", 10)))
        [fd] = store.run(process_records.record("fdstore", child.id)).outputs
        answers = store.run(open_answer_stream(child, (fd,), None))
        assert answers is not None
        for at in range(0, len(halves), step):
            store.run(answers.add("".join(halves[at : at + step])))
            store.run(answers.add(""))  # what else comes between
        said = answers.chars
        store.run(answers.complete())
        store.run(answers.add("Two."))
        store.run(answers.complete())
        store.run(processes.end(child))

        assert "".join(store.process("solo").follow(fd)) == f"{shown}\n\nTwo."
        assert said == len(shown)


def test_half_a_character_of_an_answer_that_breaks_off_is_not_part_of_the_next(store: Store) -> None:
    child = store.run(
        processes.create_child(store.process("solo").handle, [], output=processes.Output("text", 10))
    )
    [fd] = store.run(process_records.record("fdstore", child.id)).outputs
    answers = store.run(open_answer_stream(child, (fd,), None))
    assert answers is not None

    store.run(answers.add("One \ud83d"))
    answers.restart()
    store.run(answers.add("\ude00 Two."))
    store.run(answers.complete())
    store.run(processes.end(child))

    assert "".join(store.process("solo").follow(fd)) == f"One {RETRY_MARKER}\\ude00 Two."


def test_a_parent_that_closes_the_text_still_gets_the_answer(pair: Pair) -> None:
    pair.parts["SOLO"] = [
        BACKGROUND,
        call("close_fd", fd="fd:1"),
        call("wait", target="solo.1"),
        say("Done."),
    ]
    pair.begin()
    pair.speak()
    pair.agents.attempt("solo")

    assert pair.agents.results()[-1].content == (
        '<process_result process="solo.1" program="speaker" state="exited" exit_code="0" fd="fd:1">\n'
        "Hello.\n</process_result>"
    )
    assert pair.agents.store.tree("solo").fds == 0


def test_a_long_answer_that_is_all_of_the_text_is_stored_once(pair: Pair) -> None:
    long = "word " * 50
    pair.parts["SOLO"] = [BACKGROUND, call("wait", target="fd:1"), say("Done.")]
    pair.parts["SPEAKER"] = [say(long)]
    pair.begin()
    pair.speak()
    pair.agents.attempt("solo")

    result = pair.agents.results()[-1].content
    assert result.startswith(
        '<process_result process="solo.1" program="speaker" state="exited" exit_code="0" fd="fd:1">\n'
        '<fd_result fd="fd:1" pages="5"'
    )
    tree = pair.agents.store.tree("solo")
    assert (tree.fds, tree.bytes) == (1, len(long))
    assert pair.text == long


def test_a_long_answer_after_others_is_a_descriptor_of_its_own(pair: Pair) -> None:
    long = "word " * 50
    pair.parts["SOLO"] = [BACKGROUND, call("wait", target="fd:1"), say("Done.")]
    pair.parts["SPEAKER"] = [turn(say("I look."), call("echo", words="a")), say(long)]
    pair.begin()
    pair.speak()
    pair.agents.attempt("solo")

    assert '<fd_result fd="fd:2"' in pair.agents.results()[-1].content
    assert pair.root.read("fd:2", read_all=True).text == long
    assert pair.text == f"I look.\n\n{long}"
