"""`fork`: forks of an agent with its whole conversation and descriptor table, in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fdstore import TreeLimits
from fdstore.agents.loop.history import NOT_RUN_IN_FORK
from fdstore.agents.loop.program_loader import Limits
from fdstore.client import Store
from fdstore.testing import Request, call, fail, say, turn
from tests.elements import elements, only
from tests.on_redis.running_agents import READER, SMALL, Agents, StopAfterClaim, running

ENABLED = ("read_fd", "list_fds", "write_fd", "spawn", "fork")
TWO = call("fork", prompts=["Look left.", "Look right."])

Play = Callable[..., Any]


def fork_number_of(request: Request) -> int:
    """Return the number of the fork that sent the request, 0 for the original."""
    for result in reversed(request.tool_results()):
        if result.text.startswith("You are copy "):
            return int(result.text.split()[3])
    return 0


class ForkScript:
    """The replies of the model to the original agent and, separately, to each of its forks."""

    def __init__(self, original: list[Any], **forks: list[Any]) -> None:
        self._original = original
        self._copies = {int(name.removeprefix("copy")): replies for name, replies in forks.items()}
        self._taken: dict[int, int] = {}
        self._turn = threading.Lock()

    def __call__(self, request: Request) -> Any:
        number = fork_number_of(request)
        replies = self._original if number == 0 else self._copies[number]
        with self._turn:
            taken = self._taken.get(number, 0)
            self._taken[number] = taken + 1
        return replies[taken]


@pytest.fixture
def play(store: Store, tmp_path: Path) -> Play:
    """Return a function that launches an agent with this script and runs its tree to the end."""

    @contextmanager
    def played(script: Any, query: str = "Look around.", **fields: Any) -> Iterator[Agents]:
        with running(store, script, tmp_path) as agents:
            fields.setdefault("tools", ENABLED)
            fields.setdefault("others", [READER])
            agents.launch(query, **fields)
            agents.run_all("solo")
            yield agents

    return played


def requests_of(agents: Agents, number: int) -> list[Request]:
    """Return the requests of a fork, or of the original for 0."""
    return [request for request in agents.model.requests if fork_number_of(request) == number]


# the conversation


def test_a_fork_has_the_whole_conversation_and_its_own_task(play: Play) -> None:
    script_by_fork = ForkScript(
        [call("write_fd", data="a note"), TWO, say("Both looked.")],
        copy1=[say("Left is clear.")],
        copy2=[say("Right is clear.")],
    )

    with play(script_by_fork) as agents:
        before = requests_of(agents, 0)[1]
        [copy] = requests_of(agents, 2)

        assert copy.system == before.system
        assert copy.messages[: len(before.messages)] == before.messages
        fork_request, fork_tasks = copy.messages[len(before.messages) :]
        assert [block["name"] for block in fork_request["content"]] == ["fork"]
        assert fork_tasks["role"] == "user"
        assert copy.last_text() == (
            "You are copy 2 of 2. You have the conversation and the stored texts of the process that made "
            "this call, as they were then; it waits for your last message. Copies have no fork and no spawn. "
            "Your task:\n\nLook right."
        )


def test_a_fork_call_returns_one_process_result_per_prompt_in_order(play: Play) -> None:
    script_by_fork = ForkScript(
        [TWO, say("Done.")], copy1=[say("Left is clear.")], copy2=[say("Right is clear.")]
    )

    with play(script_by_fork) as agents:
        [result] = agents.results()

        assert result.content == (
            '<process_result process="solo.1" program="solo" state="exited" exit_code="0">\n'
            "Left is clear.\n"
            "</process_result>\n"
            '<process_result process="solo.2" program="solo" state="exited" exit_code="0">\n'
            "Right is clear.\n"
            "</process_result>"
        )
        assert not result.is_error
        assert agents.answer() == "Done."


def test_a_fork_has_the_identical_system_prompt_even_with_paged_input(play: Play) -> None:
    script_by_fork = ForkScript([TWO, say("Done.")], copy1=[say("a")], copy2=[say("b")])

    with play(script_by_fork, query="long " * 100, file_descriptor=SMALL) as agents:
        raw = [request.raw["system"] for request in agents.model.requests]

        assert len(raw) == 4
        assert len(set(map(str, raw))) == 1
        assert requests_of(agents, 1)[0].messages[0] == requests_of(agents, 0)[0].messages[0]


def test_a_fork_sees_results_for_all_calls_of_the_forking_turn(play: Play) -> None:
    several = turn(
        call("list_fds"),
        call("spawn", program_name="reader", query="Read."),
        call("fork", prompts=["Look."]),
        call("write_fd", data="after"),
    )

    def script(request: Request) -> Any:
        if request.system.startswith(READER.system):
            return say("Read.")
        return script_by_fork(request)

    script_by_fork = ForkScript([several, say("Done.")], copy1=[say("I looked.")])

    with play(script) as agents:
        [copy] = requests_of(agents, 1)
        listed, spawned, forked, written = copy.tool_results()[-4:]

        assert only(listed.text).name == "fd_list"
        assert (spawned.text, written.text) == (NOT_RUN_IN_FORK, NOT_RUN_IN_FORK)
        assert forked.text.endswith("Your task:\n\nLook.")
        done = requests_of(agents, 0)[-1].tool_results()
        assert [only(each.text).name for each in done] == [
            "fd_list",
            "process_result",
            "process_result",
            "fd_write",
        ]


def test_a_fork_runs_independently(play: Play) -> None:
    script_by_fork = ForkScript(
        [call("fork", prompts=["Note it."]), call("list_fds"), say("Done.")],
        copy1=[call("write_fd", data="of the copy"), call("list_fds"), say("Noted.")],
    )

    with play(script_by_fork) as agents:
        assert [only(each.text).name for each in requests_of(agents, 1)[-1].tool_results()[1:]] == [
            "fd_write",
            "fd_list",
        ]
        assert len(agents.journal("solo.1")) == 6
        assert only(agents.results()[-1].content)["total"] == "0"


def test_a_lost_fork_resumes_where_it_stopped(store: Store, tmp_path: Path) -> None:
    script_by_fork = ForkScript(
        [call("fork", prompts=["Note it."]), say("Done.")],
        copy1=[call("write_fd", data="once"), say("Noted.")],
    )
    with running(store, script_by_fork, tmp_path) as agents:
        agents.launch("Go.", tools=ENABLED, others=[READER])
        agents.attempt("solo")
        assert agents.attempt("solo.1", stopping=StopAfterClaim(agents, "solo.1")) == "given back"

        agents.run_all("solo")

        assert agents.record("solo.1").attempt == 2
        assert len(store.tree("solo").members) == 2
        assert agents.answer() == "Done."
        assert len(requests_of(agents, 1)) == 2


# the table


def test_a_fork_reads_the_same_texts_under_the_same_ids_without_copying_them(
    play: Play, store: Store
) -> None:
    stored: list[tuple[int, int]] = []

    def script(request: Request) -> Any:
        stored.append((store.tree("solo").fds, store.tree("solo").bytes))
        return script_by_fork(request)

    script_by_fork = ForkScript(
        [call("write_fd", data="shared\ntext\n"), TWO, say("Done.")],
        copy1=[call("read_fd", fd="fd:1#L2"), say("a")],
        copy2=[call("write_fd", data="more"), say("b")],
    )

    with play(script) as agents:
        [read] = requests_of(agents, 1)[-1].tool_results()[2:]
        [written] = requests_of(agents, 2)[-1].tool_results()[2:]

        assert only(read.text).body == "text\n"
        assert only(written.text)["fd"] == "fd:2"
        assert max(size for fds, size in stored if fds == 1) == len("shared\ntext\n")
        assert store.process("solo").read("fd:1").text == "shared\ntext\n"


def test_a_large_answer_of_a_fork_is_returned_by_reference(play: Play, store: Store) -> None:
    verses = "".join(f"verse {number}\n" for number in range(50))
    script_by_fork = ForkScript([TWO, say("Done.")], copy1=[say(verses)], copy2=[say("short")])

    with play(script_by_fork, file_descriptor=SMALL) as agents:
        large, small = elements(agents.results()[0].content)

        assert (large.child("fd_result")["fd"], small.body) == ("fd:1", "short")
        assert store.process("solo").read("fd:1", read_all=True).text == verses
        assert store.tree("solo").fds == 1


def test_a_fork_holds_the_named_passages_of_the_original(play: Play) -> None:
    script_by_fork = ForkScript(
        [turn(say('<ref id="plan">dig</ref>'), TWO), say("Done.")],
        copy1=[call("read_fd", fd="ref:plan"), say("a")],
        copy2=[say("b")],
    )

    with play(script_by_fork) as agents:
        assert only(requests_of(agents, 1)[-1].tool_results()[-1].text).body == "dig"


# tools of forks


def test_a_fork_is_offered_the_tools_of_its_parent_and_refused_fork_and_spawn(play: Play) -> None:
    script_by_fork = ForkScript(
        [TWO, say("Done.")], copy1=[call("fork", prompts=["again"]), say("a")], copy2=[say("b")]
    )

    with play(script_by_fork) as agents:
        assert requests_of(agents, 1)[0].raw["tools"] == requests_of(agents, 0)[0].raw["tools"]
        refused = only(requests_of(agents, 1)[-1].tool_results()[-1].text)
        assert refused.message == "a copy cannot call fork; do its task with the other tools"
        assert agents.record("solo.1").state == "exited"


def test_forks_may_spawn_enables_nested_forks_with_the_whole_conversation(play: Play) -> None:
    def script(request: Request) -> Any:
        fork_tasks = [
            result.text for result in request.tool_results() if result.text.startswith("You are copy ")
        ]
        if len(fork_tasks) == 2:
            return say("Deepest.")
        if len(fork_tasks) == 1:
            return (
                say("Deeper.")
                if "process_result" in request.last_text()
                else call("fork", prompts=["Deeper."])
            )
        if "process_result" in request.last_text():
            return say("Done.")
        return (
            call("fork", prompts=["Deep."]) if request.turn_number else call("write_fd", data="seen by all")
        )

    with play(script, limits=Limits(forks_may_spawn=True)) as agents:
        deepest = next(request for request in agents.model.requests if "Deeper." in request.last_text())

        texts = [result.text for result in deepest.tool_results()]
        assert only(texts[0]).name == "fd_write"
        assert [text.rpartition("\n")[2] for text in texts[1:]] == ["Deep.", "Deeper."]
        assert "no fork" not in texts[1]
        assert set(deepest.tools) == set(ENABLED)
        assert [member.id for member in agents.store.tree("solo").members] == ["solo", "solo.1", "solo.1.1"]
        assert agents.answer() == "Done."


def test_a_fork_has_its_own_turn_and_token_counts(play: Play) -> None:
    notes = [call("write_fd", data=str(number)) for number in range(3)]
    script_by_fork = ForkScript(
        [*notes[:2], call("fork", prompts=["Go on."]), say("Done.")], copy1=[*notes, say("Four of mine.")]
    )

    with play(script_by_fork, limits=Limits(max_turns=4)) as agents:
        assert agents.answer("solo.1") == "Four of mine."
        assert agents.answer() == "Done."


def test_one_failing_fork_does_not_affect_the_others(play: Play) -> None:
    broken = [fail(400, "invalid_request_error", "no")]
    script_by_fork = ForkScript([TWO, say("Done.")], copy1=broken, copy2=[say("Right is clear.")])

    with play(script_by_fork) as agents:
        [result] = agents.results()
        failed, good = elements(result.content)

        assert (failed["process"], failed["state"], "exit_code" in failed.attributes) == (
            "solo.1",
            "failed",
            False,
        )
        assert (good.body, result.is_error) == ("Right is clear.", False)
        assert agents.answer() == "Done."


# refusals


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ([], "prompts: 1 to 10 are taken, one for each copy"),
        (["x"] * 11, "prompts: 1 to 10 are taken, one for each copy"),
        (["x", " "], "prompts[1]: must say what is to be done"),
        ("x", "prompts: Expected `array`, got `str`"),
        ([1], "prompts[0]: Expected `str`, got `int`"),
    ],
)
def test_a_refused_fork_call_creates_no_process(play: Play, prompts: Any, message: str) -> None:
    with play(ForkScript([call("fork", prompts=prompts), say("Done.")])) as agents:
        [result] = agents.results()

        assert (only(result.content)["type"], only(result.content).message) == ("invalid_argument", message)
        assert result.is_error
        assert len(agents.store.tree("solo").members) == 1


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (TreeLimits(tree_live=3), "tree_live"),
        (TreeLimits(tree_processes=3), "tree_processes"),
        (TreeLimits(tree_depth=1), "tree_depth"),
    ],
)
def test_forks_of_one_call_are_created_all_or_none(play: Play, limits: TreeLimits, name: str) -> None:
    script = ForkScript([call("fork", prompts=["a", "b", "c"]), say("Done.")])

    with play(script, tree_limits=limits) as agents:
        error = only(agents.results()[0].content)

        assert (error["type"], f"the limit {name} of this tree" in error.message) == ("spawn_limit", True)
        assert [member.id for member in agents.store.tree("solo").members] == ["solo"]
        assert agents.answer() == "Done."
