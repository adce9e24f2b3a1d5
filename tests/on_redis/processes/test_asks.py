"""Asks of a program: each is answered once, by lanes on any workers, and none is left without an answer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fdstore.client import Process, Store
from fdstore.errors import DamagedRecord, Fenced
from fdstore.model import ends
from fdstore.model.records import ModelPrice, TokenUsage, TreeLimits
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import asks, leases, processes, waiting
from fdstore.store.processes.asks import (
    PER_LANE,
    Answered,
    Ask,
    AskAnswer,
    AskPart,
    AskSettings,
    Next,
    StoredAsk,
)
from fdstore.testing import Request, fail, held, say, turn
from fdstore.testing.replies import Reply, Usage
from tests.dialects import current, every_dialect
from tests.on_redis.child_agents import claim
from tests.on_redis.running_agents import Agents, running
from tests.round_trips import count_round_trips, killed_after
from tests.unit.agents.loop.endless_server import begun, endless
from tests.waiting import PATIENCE_S, stretched

SETTINGS = AskSettings(model="any", max_tokens=100, system="Answer.")
Script = Callable[[Request], Reply]


def question_of(request: Request) -> str:
    content = request.messages[0]["content"]
    last = content if isinstance(content, str) else content[-1]["text"]
    return str(last).rpartition("\n\n")[2]  # some APIs get the texts before it in one with it


def answer_in_capitals(request: Request) -> Reply:
    return say(question_of(request).upper())


class Asking:
    """A process that asks, and the scripted model that answers with the question in capitals."""

    def __init__(self, agents: Agents, proc: Process) -> None:
        self.agents = agents
        self.store = agents.store
        self.proc = proc
        self.script: Script = answer_in_capitals

    def start(self, *asked: Ask, call: str = "call", **settings: Any) -> tuple[str, ...]:
        chosen = msgspec.structs.replace(SETTINGS, **settings)
        return self.store.run(asks.start(self.proc.handle, call, asked, chosen))

    def run(self) -> None:
        self.agents.run_all(self.proc.id.partition(".")[0])

    def found(self, count: int, call: str = "call") -> dict[int, AskAnswer]:
        return self.store.run(asks.answers(self.proc.handle, call, range(count)))

    def texts(self, count: int, call: str = "call") -> list[str]:
        """The text of each answer, or its error."""
        found = self.found(count, call)
        return [found[number].error or found[number].text for number in range(count)]

    def asked(self) -> Counter[str]:
        """Return how often the model was asked each question."""
        return Counter(map(question_of, self.agents.model.requests))

    def counts(self, call: str = "call") -> list[int]:
        """Return how many asks there are, have an answer, have an error as their answer."""
        [found] = self.store.run(asks.read_counts("fdstore", [(self.proc.id, call)]))
        return [found.total, found.done, found.failed] if found else []

    def states(self, *lanes: str) -> list[str]:
        tree = self.store.tree(self.proc.handle.keys.tree.tree)
        members = {member.id: member.state for member in tree.members}
        return [members[lane] for lane in lanes]

    def claim(self, lane: str) -> ProcessHandle:
        """Take the lane, as a worker that this test plays."""
        return claim(self.store, lane)

    def next(self, lane: ProcessHandle, *, running: Any = (), answered: Any = (), width: int = 5) -> Next:
        call = asks.take_next(
            lane, self.proc.handle, "call", width=width, running=tuple(running), answered=tuple(answered)
        )
        return self.store.run(call)


def questions(count: int, first: int = 0) -> list[Ask]:
    return [Ask(number, f"question {number}") for number in range(first, first + count)]


def capitals(count: int) -> list[str]:
    return [f"QUESTION {number}" for number in range(count)]


def an_answer(number: int, text: str = "an answer") -> Answered:
    usage = TokenUsage(input_tokens=10, output_tokens=1)
    return Answered(number=number, answer=AskAnswer(text=text, tokens=11, seconds=0.5), usage=usage)


@pytest.fixture
def asking(store: Store, proc: Process, tmp_path: Path) -> Iterator[Asking]:
    made: list[Asking] = []
    with running(store, lambda request: made[0].script(request), tmp_path) as agents:
        made.append(Asking(agents, proc))
        yield made[0]


# --- answers


@every_dialect
def test_all_asks_are_answered_and_each_by_its_number(asking: Asking) -> None:
    lanes = asking.start(*questions(60))
    assert lanes == ("triage.1", "triage.2")

    asking.run()

    assert asking.texts(60) == capitals(60)
    assert asking.asked() == Counter(f"question {number}" for number in range(60))
    assert asking.states(*lanes) == ["exited", "exited"]
    assert asking.counts() == [60, 60, 0]


@pytest.mark.parametrize(
    ("count", "at_once", "lanes"),
    [(1, 50, 1), (PER_LANE, 50, 1), (PER_LANE + 1, 50, 2), (1000, 50, 2), (1000, 10, 1), (1000, 120, 5)],
)
def test_the_number_of_lanes_follows_how_many_are_asked_at_once(
    asking: Asking, count: int, at_once: int, lanes: int
) -> None:
    assert len(asking.start(*questions(count), at_once=at_once)) == lanes


@every_dialect
def test_no_more_are_asked_at_once_than_allowed(asking: Asking) -> None:
    together, most, lock = [0], [0], threading.Lock()

    def script(request: Request) -> Reply:
        with lock:
            together[0] += 1
            most[0] = max(most[0], together[0])
        threading.Event().wait(0.02)
        with lock:
            together[0] -= 1
        return answer_in_capitals(request)

    asking.script = script
    asking.start(*questions(40), at_once=4)

    asking.run()

    assert asking.texts(40) == capitals(40)
    assert 2 <= most[0] <= 4


def test_a_text_is_sent_whole_with_its_name_before_the_question(asking: Asking) -> None:
    asking.proc.create("".join(f"line {number}\n" for number in range(1, 2001)), page_size=100)
    parts = [AskPart("fd:1#L1999-2000"), "a text\nof two lines", AskPart("fd:1#C1-6")]

    asking.start(Ask(0, "What is it?", parts), parameters={"thinking": {"type": "disabled"}})
    asking.run()

    [request] = asking.agents.model.requests
    texts = [
        "Text 1, fd:1#L1999-2000:\nline 1999\nline 2000\n",
        "Text 2:\na text\nof two lines",
        "Text 3, fd:1#C1-6:\nline 1",
        "What is it?",
    ]
    assert [block["text"] for block in request.messages[0]["content"]] == texts
    assert (request.system, request.tools, request.raw["max_tokens"]) == ("Answer.", (), 100)
    assert request.raw["thinking"] == {"type": "disabled"}
    assert "cache_control" not in request.messages[0]["content"][0]


def test_a_text_that_several_asks_begin_with_is_kept_in_the_cache_of_the_provider(asking: Asking) -> None:
    asking.proc.create("a shared text")
    order: list[str] = []
    answering = threading.Event()

    def script(request: Request) -> Reply:
        order.append(question_of(request))
        if question_of(request) == "first":
            answering.wait(0.1)
            order.append("the first answer begins")
        return say("Yes.")

    asking.script = script
    names = ("first", "second", "third")
    shared = [Ask(number, name, [AskPart("fd:1")]) for number, name in enumerate(names)]
    asking.start(*shared, Ask(3, "other", ["another text"]))
    asking.run()

    assert asking.texts(4) == ["Yes."] * 4
    blocks = {question_of(r): r.messages[0]["content"][0] for r in asking.agents.model.requests}
    marked = {name: block["cache_control"] for name, block in blocks.items() if "cache_control" in block}
    assert marked == {name: {"type": "ephemeral"} for name in names}
    assert order.index("the first answer begins") < min(order.index("second"), order.index("third"))


def test_tokens_calls_and_costs_are_those_of_the_tree(asking: Asking) -> None:
    usage = Usage(input_tokens=1000, output_tokens=100, cache_read_input_tokens=500)
    asking.script = lambda request: turn(say("Yes."), usage=usage)
    price = ModelPrice(input=3, output=15, cache_read=0.3)

    asking.start(*questions(3), price=price)
    asking.run()

    tree = asking.store.tree("triage")
    [lane] = [member for member in tree.members if member.kind == "asks"]
    assert (tree.model_calls, tree.all_model_calls, tree.tokens) == (3, 3, 3 * 1600)
    assert (lane.input_tokens, lane.output_tokens, lane.cache_read_tokens) == (4500, 300, 1500)
    assert lane.cost == price.cost(lane)
    found = asking.found(1)[0]
    assert found.tokens == 1600
    assert 0 < found.seconds < PATIENCE_S


@pytest.mark.thorough("many lanes")
def test_lanes_are_not_counted_in_the_processes_of_a_tree(store: Store, asking: Asking) -> None:
    limits = TreeLimits(tree_depth=1, tree_live=1, tree_processes=1)
    asking.proc = store.process("small", limits=limits)

    lanes = asking.start(*questions(60))

    tree = store.tree("small")
    assert (len(lanes), tree.processes, tree.live, len(tree.members)) == (2, 1, 1, 3)
    asking.run()
    tree = store.tree("small")
    assert (tree.processes, tree.live) == (1, 1)
    assert asking.texts(60) == capitals(60)


# --- exactly once


@every_dialect
def test_a_repeated_start_asks_nothing_twice(asking: Asking) -> None:
    first = asking.start(*questions(30))
    assert asking.start(*questions(30)) == first

    asking.run()

    assert asking.start(*questions(30)) == ()
    assert asking.start(*questions(40)) == ("triage.3",)
    asking.run()
    assert asking.texts(40) == capitals(40)
    assert set(asking.asked().values()) == {1}
    assert asking.counts() == [40, 40, 0]


def test_calls_do_not_share_their_asks(asking: Asking) -> None:
    asking.start(*questions(3), call="a/b")
    asking.start(Ask(0, "of another call"), call="a")

    asking.run()

    assert asking.texts(3, "a/b") == capitals(3)
    assert asking.texts(1, "a") == ["OF ANOTHER CALL"]
    assert asking.found(9, "b") == {}
    assert [asking.counts(call) for call in ("a/b", "a", "b")] == [[3, 3, 0], [1, 1, 0], []]


@pytest.mark.thorough("a fault at every request")
def test_a_start_that_was_killed_after_any_request_is_repeated_whole(store: Store, asking: Asking) -> None:
    asking.proc.create("a text")
    asked = [Ask(n, f"question {n}" + "." * 20_000, [AskPart("fd:1")]) for n in range(60)]
    requests = 1
    while not killed_after(store, asks.start(asking.proc.handle, "call", asked, SETTINGS), requests):
        requests += 1
    assert requests > 3

    lanes = asking.start(*asked)
    asking.run()

    assert len(lanes) == 2
    assert [len(text) for text in asking.texts(60)] == [len(ask.question) for ask in asked]
    assert set(asking.asked().values()) == {1}


@every_dialect
def test_the_next_attempt_asks_only_what_was_not_answered(asking: Asking) -> None:
    [lane] = asking.start(*questions(20))
    handle = asking.claim(lane)
    taken = asking.next(handle)
    assert list(taken.asks) == [0, 1, 2, 3, 4]
    asking.next(handle, running=[1, 2, 4], answered=[an_answer(0), an_answer(3)])

    asking.agents.lose(lane)
    asking.run()

    assert asking.texts(20) == [
        "an answer" if number in (0, 3) else f"QUESTION {number}" for number in range(20)
    ]
    assert set(asking.asked().values()) == {1}


def test_an_attempt_that_was_replaced_stores_no_answers(asking: Asking) -> None:
    [lane] = asking.start(*questions(5))
    stale = asking.claim(lane)
    asking.next(stale)
    asking.agents.lose(lane)
    asking.claim(lane)

    with pytest.raises(Fenced, match="attempt 1 no longer runs it"):
        asking.next(stale, answered=[an_answer(0)])

    assert asking.found(5) == {}


def test_a_repeat_after_a_lost_reply_takes_the_same_and_counts_once(store: Store, asking: Asking) -> None:
    [lane] = asking.start(*questions(20))
    handle = asking.claim(lane)

    first, again = asking.next(handle), asking.next(handle)
    assert list(first.asks) == list(again.asks) == [0, 1, 2, 3, 4]

    for _ in range(2):
        found = asking.next(handle, running=[2, 3, 4], answered=[an_answer(0), an_answer(1)])
        assert list(found.asks) == [5, 6]
    assert store.tree("triage").all_model_calls == 2
    assert asking.counts() == [20, 2, 0]


def test_several_answers_and_the_next_asks_are_one_round_trip(store: Store, asking: Asking) -> None:
    [lane] = asking.start(*questions(20))
    handle = asking.claim(lane)
    asking.next(handle, width=10)

    store_and_take = asks.take_next(
        *(handle, asking.proc.handle, "call"),
        width=10,
        running=[],
        answered=[an_answer(number) for number in range(10)],
    )
    found, round_trips = count_round_trips(store, store_and_take)

    assert (list(found.asks), round_trips) == (list(range(10, 20)), 1)


def test_the_end_of_a_lane_and_its_last_answer_are_one_step(asking: Asking) -> None:
    [lane] = asking.start(*questions(1))
    handle = asking.claim(lane)
    asking.next(handle)

    ended = asking.next(handle, answered=[an_answer(0)])

    assert (ended.how, asking.states(lane)) == ("ended", ["exited"])
    assert asking.next(handle, answered=[an_answer(0)]).how == "ended", "the reply was lost"


def test_two_lanes_take_different_asks(asking: Asking) -> None:
    handles = [asking.claim(lane) for lane in asking.start(*questions(60))]

    taken = [asking.next(handle, width=30).asks for handle in handles]

    assert [list(each) for each in taken] == [list(range(30)), list(range(30, 60))]
    assert taken[0][0] == StoredAsk("question 0", [], SETTINGS.id)


# --- the process that waits


def test_the_end_of_the_last_lane_wakes_the_process_that_waits(store: Store, asking: Asking) -> None:
    child = store.run(processes.create_child(asking.proc.handle, [], state="ready"))
    asking.proc = Process(store, asking.claim(child.id))
    lanes = asking.start(*questions(60))
    assert store.run(waiting.park(asking.proc.handle, list(lanes)))
    first, last = map(asking.claim, lanes)
    asking.next(first, width=30)
    asking.next(last, width=30)

    assert asking.next(first, answered=map(an_answer, range(30)), width=30).woken == ()
    assert asking.states(child.id) == ["waiting"]
    assert asking.next(last, answered=map(an_answer, range(30, 60)), width=30).woken == (child.id,)

    assert asking.states(child.id) == ["ready"]


@pytest.mark.parametrize("how", ["ends", "is killed", "is killed with its tree"])
def test_lanes_end_with_the_process_that_asks(store: Store, asking: Asking, how: str) -> None:
    asking.proc = asking.proc.child()
    lanes = asking.start(*questions(60))
    handle = asking.claim(lanes[0])
    asking.next(handle)

    if how == "ends":
        asking.proc.end()
    else:
        store.run(processes.cancel("fdstore", asking.proc.id if how == "is killed" else "triage"))

    assert asking.states(*lanes) == ["cancelled", "cancelled"]
    with pytest.raises(Fenced):
        asking.next(handle, answered=[an_answer(0)])


# --- failures


@every_dialect
def test_a_failed_ask_does_not_disturb_the_others(asking: Asking) -> None:
    asking.proc.create("a text")
    asking.proc.create("another text")
    asking.proc.create(b"\x00\x01")
    asking.proc.close("fd:2")

    def script(request: Request) -> Reply:
        match question_of(request):
            case "refused":
                return turn(stop_reason="refusal")
            case "not accepted":
                return fail(400, message="no")
        return say("Yes.")

    asking.script = script
    asking.start(
        Ask(0, "ok", [AskPart("fd:1")]),
        Ask(1, "refused"),
        Ask(2, "not accepted"),
        Ask(3, "closed", [AskPart("fd:2")]),
        Ask(4, "bytes", [AskPart("fd:3")]),
        Ask(5, "past the end", [AskPart("fd:1#L9-10")]),
        Ask(6, "nonsense", [AskPart("what?")]),
        Ask(7, "ok"),
    )
    asking.run()

    found = asking.texts(8)
    assert (found[0], found[7]) == ("Yes.", "Yes.")
    assert found[1] == "model_failed: the model refused to answer"
    assert found[2] == f"model_failed: the model answered 400{current().kind('invalid_request_error')}: no"
    types = [text.partition(": ")[0] for text in found[3:7]]
    assert types == ["not_found", "not_text", "invalid_range", "invalid_argument"]
    assert asking.counts() == [8, 8, 6]


@every_dialect
def test_an_answer_that_does_not_end_is_an_error_of_its_ask(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fdstore.agents.runtime.run_asks.ANSWER_S", 0.0)
    monkeypatch.setattr("fdstore.agents.loop.models.tries.SLACK_S", stretched(0.3))
    [lane] = asking.start(*questions(1), give_up_seconds=0.1)

    with endless(begun()) as server, closing(current().client(server.url, api_key="any")) as model:
        asking.agents.attempt(lane, model=lambda _: model)

    assert server.requests == 1
    assert asking.texts(1)[0].startswith("model_failed: the answer was not whole after ")


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ([AskPart("fd:1")], 1000),
        (["x" * 101], 101),
        ([AskPart("fd:1#C51-151")], 101),
        ([AskPart("fd:1#C51-150"), "x"], 101),
        ([AskPart("fd:1#L11-21")], 110),
        (["x" * 20, AskPart("fd:1#L11-20")], 120),
    ],
)
def test_texts_that_are_too_long_are_an_error_that_says_to_split_them(
    asking: Asking, parts: list[Any], size: int
) -> None:
    asking.proc.create("123456789\n" * 100)

    asking.start(Ask(0, "Long?", parts), Ask(1, "Short?", [AskPart("fd:1#L1-10")]), max_chars=100)
    asking.run()

    long, short = asking.texts(2)
    assert short == "SHORT?"
    problem = f"this ask has {size} characters of text, more than the limit of 100; split"
    assert long.startswith(f"too_large: {problem}")
    assert asking.asked() == {"Short?": 1}


def test_a_range_past_the_end_counts_as_what_there_is(asking: Asking) -> None:
    asking.proc.create("x" * 80)

    asking.start(Ask(0, "Whole?", [AskPart("fd:1#C1-50000")]), max_chars=100)
    asking.run()

    assert asking.texts(1) == ["WHOLE?"]


@pytest.mark.parametrize("name", ["tree_model_calls", "tree_model_calls_per_day"])
def test_no_more_calls_are_made_than_the_tree_may_make(store: Store, asking: Asking, name: str) -> None:
    asking.proc = store.process("small", limits=TreeLimits(**{name: 10}))

    asking.start(*questions(700))
    asking.run()

    assert len(asking.agents.model.requests) == 10
    found = Counter(text.partition(": ")[0] for text in asking.texts(700))
    assert found == {"quota_exceeded": 690} | {f"QUESTION {number}": 1 for number in range(10)}
    assert asking.texts(11)[10].startswith(f"quota_exceeded: {name}: this tree has used")
    assert asking.counts() == [700, 700, 690]


def test_the_rest_fails_when_the_tree_has_used_its_tokens(store: Store, asking: Asking) -> None:
    asking.proc = store.process("small", limits=TreeLimits(tree_token_budget=1000))
    asking.script = lambda request: turn(say("Yes."), usage=Usage(input_tokens=90, output_tokens=10))

    asking.start(*questions(100), at_once=5)
    asking.run()

    found = Counter(asking.texts(100))
    assert 10 <= found.pop("Yes.") <= 15
    [reason] = found
    assert reason.startswith("quota_exceeded: tree_token_budget: this tree has used 1")


@every_dialect
def test_a_lane_that_takes_its_workers_down_leaves_its_asks_failed_and_no_others(
    store: Store, asking: Asking
) -> None:
    bad, good = asking.start(*questions(60))
    handle = asking.claim(bad)
    assert list(asking.next(handle).asks) == [0, 1, 2, 3, 4]
    asking.next(handle, running=[0, 1, 3, 4], answered=[an_answer(2)])
    store.run(processes.end(handle, "failed", exit_code=None, reason="poison", release=False))

    asking.run()

    found = asking.texts(60)
    assert found[:6] == ["failed: poison", "failed: poison", "an answer", *["failed: poison"] * 3]
    assert found[6:] == capitals(60)[6:]
    assert asking.states(bad, good) == ["failed", "exited"]
    assert asking.start(*questions(60)) == (), "a failure is final"


def test_when_all_lanes_were_killed_every_ask_without_an_answer_fails(store: Store, asking: Asking) -> None:
    lanes = asking.start(*questions(60))
    handle = asking.claim(lanes[0])
    asking.next(handle)
    asking.next(handle, running=[1, 2, 3, 4], answered=[an_answer(0)])

    for lane in lanes:
        store.run(processes.cancel("fdstore", lane))

    assert asking.texts(60) == ["an answer", *["cancelled: killed"] * 59]
    assert asking.counts() == [60, 60, 59]
    assert asking.start(*questions(60)) == ()
    assert asking.start(*questions(61)) == ("triage.3",), "new ones are asked"
    asking.run()
    assert asking.texts(61)[60] == "QUESTION 60"


def test_lost_lanes_are_found_by_the_sweep_and_end_as_poison(store: Store, asking: Asking) -> None:
    [lane] = asking.start(*questions(3))
    for crash in range(leases.MAX_LOSSES):
        keys = process_keys("fdstore", lane)
        claimed = store.run(leases.claim(keys, "a worker", f"claim {crash}"))
        assert isinstance(claimed, leases.Claim)
        decision = store.run(leases.record_loss(keys, f"claim {crash}"))

    assert decision.reason is ends.POISON
    handle = ProcessHandle(keys, claimed.limits, claimed.attempt)
    store.run(processes.end(handle, "failed", exit_code=None, reason="poison", release=False))
    assert asking.texts(3) == ["failed: poison"] * 3


@every_dialect
def test_a_lane_that_was_lost_runs_alone_until_it_gets_on(asking: Asking) -> None:
    [lane] = asking.start(*questions(60), at_once=10)
    handle = asking.claim(lane)
    asking.next(handle, width=10)
    asking.agents.lose(lane)

    assert asking.agents.attempt(lane, company="others") == "alone"
    assert asking.agents.attempt(lane, company="none for long") == "given back"
    assert 0 < len(asking.found(60)) < 60
    assert asking.agents.attempt(lane, company="others") == "ended"

    assert asking.texts(60) == capitals(60)
    assert set(asking.asked().values()) == {1}


@every_dialect
def test_a_worker_that_stops_returns_the_lane_when_its_requests_are_answered(asking: Asking) -> None:
    stopping = threading.Event()
    begun = threading.Barrier(4)

    def script(request: Request) -> Reply:
        begun.wait(PATIENCE_S)
        stopping.set()
        return answer_in_capitals(request)

    asking.script = script
    [lane] = asking.start(*questions(20), at_once=4)

    assert asking.agents.attempt(lane, stopping=stopping) == "given back"

    assert asking.states(lane) == ["ready"]
    assert sorted(asking.found(20)) == [0, 1, 2, 3]
    asking.script = answer_in_capitals
    asking.run()
    assert asking.texts(20) == capitals(20)
    assert set(asking.asked().values()) == {1}


def test_a_lane_that_is_killed_ends_its_requests_at_once(store: Store, asking: Asking) -> None:
    answer = held(say("Too late."), 1, threading.Event())
    asking.script = lambda request: answer
    [lane] = asking.start(*questions(5))
    endings: list[str] = []
    worker = threading.Thread(target=lambda: endings.append(asking.agents.attempt(lane)))
    worker.start()
    asking.agents.model.wait_for(5)

    store.run(processes.cancel("fdstore", lane))

    worker.join(PATIENCE_S)
    assert endings == ["lost"]
    assert asking.texts(5) == ["cancelled: killed"] * 5


def test_a_worker_without_a_model_leaves_lanes_to_others(asking: Asking) -> None:
    [lane] = asking.start(*questions(1))

    assert asking.store.run(leases.claim(process_keys("fdstore", lane), "w", only="pipelines")) == "agent"
    assert asking.store.run(leases.claim(process_keys("fdstore", lane), "w", only="neither")) == "agent"

    assert asking.states(lane) == ["ready"]


def test_asks_are_removed_with_their_tree(store: Store, asking: Asking, execute: Any) -> None:
    lanes = asking.start(*questions(60))
    for lane in lanes:
        store.run(processes.cancel("fdstore", lane))

    store.drop_tree("triage")

    left = [key for key in execute("KEYS", "fdstore:{triage}*") if b":op:" not in key]
    assert left == [b"fdstore:{triage}:earlier:numbers"]


@pytest.mark.thorough("many lanes")
def test_texts_of_a_lane_are_read_while_others_are_awaited(asking: Asking) -> None:
    asking.proc.create("".join(f"line {number}\n" for number in range(1, 10_001)))
    parts = [AskPart(f"fd:1#L{first}-{first + 99}") for first in range(1, 10_001, 100)]
    before = set(threading.enumerate())

    asking.start(*(Ask(number, f"question {number}", [part]) for number, part in enumerate(parts)))
    asking.run()

    assert asking.texts(100) == capitals(100)
    sent = {question_of(r): r.messages[0]["content"][0]["text"] for r in asking.agents.model.requests}
    assert sent["question 7"].startswith("Text 1, fd:1#L701-800:\nline 701\n")
    # a thread for some reads at a time, not one for each text; the scripted server has one for a connection
    begun = [thread.name for thread in set(threading.enumerate()) - before if "request" not in thread.name]
    assert len(begun) < 40, begun


def test_a_lane_answers_the_asks_of_its_own_tree_whatever_its_record_names(
    store: Store, asking: Asking, execute: Any
) -> None:
    store.process("victim")
    [lane] = asking.start(Ask(number=0, question="why?"))
    execute("HSET", f"fdstore:{{{asking.proc.id}}}:{lane}", "parent", "victim")

    asking.run()

    assert asking.texts(1) == ["WHY?"]
    assert not execute("EXISTS", "fdstore:{victim}:victim:asks")


@pytest.mark.parametrize("width", [0, -1, PER_LANE + 1, 10**9, 10**30, None, "5"])
def test_a_lane_with_an_impossible_width_fails(asking: Asking, execute: Any, width: object) -> None:
    [lane] = asking.start(Ask(number=0, question="why?"))
    task = msgspec.json.encode({"kind": "asks", "call": "call", "width": width})
    execute("LSET", f"fdstore:{{{asking.proc.id}}}:{lane}:journal", 0, task)

    asking.run()

    [answer] = asking.texts(1)
    assert "the record is damaged" in answer


DAMAGED_ANSWERS = [
    *(b"", b"{", b"null", b"7", b"[]", b"[" * 1000, b'{"a":' * 1000, b'{"text":7}', b'{"text":"\xff"}'),
    *(
        b'{"tokens":-1}',
        b'{"seconds":1e308}',
        b'{"at_ms":9007199254740992}',
        b'{"tokens":' + b"9" * 400 + b"}",
    ),
]


@pytest.mark.parametrize("answer", DAMAGED_ANSWERS)
def test_a_damaged_answer_is_lost_data(asking: Asking, execute: Any, answer: bytes) -> None:
    asking.start(Ask(number=0, question="why?"))
    execute("HSET", f"fdstore:{{{asking.proc.id}}}:{asking.proc.id}:asks", "answer/call/0", answer)

    if answer:
        with pytest.raises(DamagedRecord):
            asking.found(1)
    else:
        assert asking.found(1) == {}
    with pytest.raises(DamagedRecord):
        asking.store.run(asks.read_asks("fdstore", asking.proc.id, [("call", 0)]))
