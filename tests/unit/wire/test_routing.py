"""Routing of requests to the nodes of a Cluster, with Python functions as nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    NoScriptError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as LostReply

from fdstore.errors import StoreUnavailable, UnknownOutcome
from fdstore.setup.url_options import Address
from fdstore.wire import retry
from fdstore.wire.cluster_routing import AtNode, AttemptFailed, Drop, Pause, ReceiveAt, Router, SendAt
from fdstore.wire.operation import Alongside, Apart, Batch, Everywhere, Operation, Receive, Send
from fdstore.wire.redis_errors import WRONG_TYPE
from fdstore.wire.scripts import hset_if_accepted, script
from fdstore.wire.slots import guarded, key_of, units_of

ONE, TWO = ("one", 1), ("two", 2)
HALF = 8192
LOW, HIGH = "b", "a"
"""Keys of the first and of the second half of the slots."""

MAP = [[0, HALF - 1, [b"one", 1, b"id"]], [HALF, 16383, [b"two", 2, b"id"]]]


def test_the_test_keys_are_in_the_expected_halves_of_the_slots() -> None:
    assert key_slot(LOW.encode()) < HALF <= key_slot(HIGH.encode())


class Nodes:
    """Two nodes that share the slots. `says` sets the replies to a batch, by default its commands' keys.
    `asked` has the requests that they received, except those for the slot map."""

    def __init__(self) -> None:
        self.says: dict[Address, Iterator[Any]] = {}
        self.asked: list[tuple[Address, Batch]] = []
        self.paused: list[float] = []
        self.waits: list[float | None] = []
        self.maps = 0
        self.first_maps: list[Any] = []
        self.router = Router("the test", (ONE,))

    def run(self, operation: Operation[Any]) -> Any:
        requests = self.router.routed(operation)
        waiting: dict[str, list[Any]] = {}
        reply: Any = None
        try:
            request = next(requests)
            while True:
                match request:
                    case AtNode(address, batch, wait_s):
                        self.waits.append(wait_s)
                        reply = self._answer(address, batch)
                    case SendAt(address, batch, lane):
                        waiting.setdefault(lane, []).append(self._answer(address, batch))
                        reply = None
                    case ReceiveAt(lane):
                        reply = waiting[lane].pop(0)
                    case Drop(lane):
                        reply = waiting.pop(lane) and None
                    case Pause(seconds):
                        reply = self.paused.append(seconds)
                request = requests.send(reply)
        except StopIteration as done:
            return done.value

    def _answer(self, address: Address, batch: Batch) -> Any:
        if batch == [("CLUSTER", "SLOTS")]:
            self.maps += 1
            return [self.first_maps.pop(0) if self.first_maps else MAP]
        self.asked.append((address, batch))
        said = next(self.says.get(address, iter(())), None)
        return [key_of(command) or "OK" for command in batch] if said is None else said

    def ask(self, *commands: tuple[Any, ...]) -> Any:
        def operation() -> Operation[Any]:
            return (yield list(commands))

        return self.run(operation())


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


def test_reads_go_to_each_node_once_and_their_replies_come_in_order(nodes: Nodes) -> None:
    replies = nodes.ask(("GET", LOW), ("GET", HIGH), ("GET", LOW), ("GET", HIGH))

    assert replies == [LOW, HIGH, LOW, HIGH]
    assert nodes.asked == [(ONE, [("GET", LOW)] * 2), (TWO, [("GET", HIGH)] * 2)]


def test_writes_are_sent_in_the_order_of_the_batch(nodes: Nodes) -> None:
    nodes.ask(("SET", HIGH, 1), ("GET", LOW), ("SET", HIGH, 2))

    assert nodes.asked == [
        (TWO, [("SET", HIGH, 1)]),
        (ONE, [("GET", LOW)]),
        (TWO, [("SET", HIGH, 2)]),
    ]


def test_commands_after_a_redirected_write_wait_for_it(nodes: Nodes) -> None:
    nodes.says[ONE] = iter([["done", TryAgainError(), "too early"]])

    replies = nodes.ask(("SET", LOW, 0), ("SET", LOW, 1), ("SET", LOW, 2), ("SET", HIGH, 3))

    assert replies == ["done", LOW, LOW, HIGH]
    assert nodes.asked[1:] == [
        (ONE, [("SET", LOW, 1), ("SET", LOW, 2)]),
        (TWO, [("SET", HIGH, 3)]),
    ]


def test_moved_updates_the_slot_map(nodes: Nodes) -> None:
    slot = key_slot(LOW.encode())
    nodes.says[ONE] = iter([[MovedError(f"{slot} two:2")]])

    assert [nodes.ask(("GET", LOW)), nodes.ask(("GET", LOW))] == [[LOW], [LOW]]
    assert [address for address, _ in nodes.asked] == [ONE, TWO, TWO]
    assert nodes.paused == []


def test_ask_redirects_a_single_request(nodes: Nodes) -> None:
    nodes.says[ONE] = iter([[AskError("1 two:2"), LOW]])
    nodes.says[TWO] = iter([["OK", "there"]])

    assert nodes.ask(("GET", LOW), ("GET", LOW)) == ["there", LOW]
    assert nodes.asked[1] == (TWO, [("ASKING",), ("GET", LOW)])
    assert nodes.ask(("GET", LOW)) == [LOW]
    assert nodes.asked[2][0] == ONE


def test_a_redirected_transaction_is_sent_again_completely(nodes: Nodes) -> None:
    transaction = [("MULTI",), ("HSET", LOW, 1, "x"), ("EXPIRE", LOW, 9), ("EXEC",)]
    aborted = ResponseError("EXECABORT")
    nodes.says[ONE] = iter([["OK", AskError("1 two:2"), AskError("1 two:2"), aborted]])
    nodes.says[TWO] = iter([["OK", "OK", "QUEUED", "QUEUED", [1, 1]]])

    assert nodes.ask(*transaction) == ["OK", "QUEUED", "QUEUED", [1, 1]]
    assert nodes.asked[1] == (TWO, [("ASKING",), *transaction])


def test_a_script_is_sent_with_its_text_to_a_node_that_does_not_know_it(nodes: Nodes) -> None:
    nodes.says[ONE] = iter([[NoScriptError()]])

    nodes.ask(script("touch")(tree=LOW))

    [(_, [first]), (_, [second])] = nodes.asked
    assert (first[0], second[0]) == ("EVALSHA", "EVAL")
    assert first[2:] == second[2:]


def test_a_transaction_is_sent_with_the_text_of_its_script_as_a_whole(nodes: Nodes) -> None:
    call = script("touch")(tree=LOW)
    batch = hset_if_accepted(call, call, LOW, LOW, [1, "x"])
    refused = [1, "OK", NoScriptError(), ResponseError(WRONG_TYPE), NoScriptError(), "OK"]
    nodes.says[ONE] = iter([["OK", *["QUEUED"] * 6, refused]])

    nodes.ask(*batch)

    [(_, first), (_, second)] = nodes.asked
    assert [command[0] for command in first] == [
        *("MULTI", "RENAMENX", "SET", "EVALSHA", "HSET", "EVALSHA", "RENAME", "EXEC")
    ]
    assert [command[0] for command in second] == [
        *("MULTI", "RENAMENX", "SET", "EVAL", "HSET", "EVAL", "RENAME", "EXEC")
    ]


def test_a_script_is_given_one_key_more_than_there_can_be() -> None:
    name, sha, count, *rest = guarded(("EVALSHA", "sha", 2, "fdstore:{t}", "fdstore:{t}:t", "an", "argument"))

    assert (name, sha, count) == ("EVALSHA", "sha", 3)
    assert rest == ["fdstore:{t}", "fdstore:{t}:t", "fdstore:{t}:guard", "an", "argument"]


def test_a_lost_node_is_retried_after_refreshing_the_slot_map_from_the_others(nodes: Nodes) -> None:
    nodes.says[TWO] = iter([AttemptFailed(LostConnection("gone"), sent=True)] * 3)

    assert nodes.ask(("GET", HIGH)) == [HIGH]
    assert nodes.maps == 1 + 3
    assert nodes.paused == [0.05, 0.1]


@pytest.mark.parametrize(
    ("command", "said", "error"),
    [
        (("GET", LOW), AttemptFailed(LostConnection("gone"), sent=True), StoreUnavailable),
        (("SET", LOW, 1), AttemptFailed(LostConnection("gone"), sent=False), StoreUnavailable),
        (("SET", LOW, 1), AttemptFailed(LostConnection("gone"), sent=True), UnknownOutcome),
        (("SET", LOW, 1), [ClusterDownError("The cluster is down")], StoreUnavailable),
        (("SET", LOW, 1), [TryAgainError("Multiple keys request")], StoreUnavailable),
    ],
)
def test_a_lasting_refusal_is_a_typed_error_and_in_doubt_only_if_the_write_may_have_run(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, command: Any, said: Any, error: type[Exception]
) -> None:
    monkeypatch.setattr(retry, "DEADLINE_S", 0.0)
    nodes.says[ONE] = iter([said] * 100)

    with pytest.raises(error):
        nodes.ask(command)


def test_a_redirect_loop_between_two_nodes_ends(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "DEADLINE_S", 0.0)
    slot = key_slot(LOW.encode())
    nodes.says[ONE] = iter([[MovedError(f"{slot} two:2")]] * 1000)
    nodes.says[TWO] = iter([[MovedError(f"{slot} one:1")]] * 1000)

    with pytest.raises(StoreUnavailable):
        nodes.ask(("GET", LOW))


def test_requests_in_flight_to_a_lost_node_are_retried_one_by_one(nodes: Nodes) -> None:
    nodes.says[ONE] = iter([["first"], AttemptFailed(LostConnection("gone"), sent=True), ["never read"]])

    def operation() -> Operation[Any]:
        for _ in range(3):
            yield Send([("GET", LOW)], "read")
        received = []
        for _ in range(3):
            received += yield Receive("read")
        yield Send([("GET", LOW)], "read")
        return [*received, *(yield Receive("read"))]

    assert nodes.run(operation()) == ["first", LOW, LOW, LOW]


def test_every_primary_is_asked_and_a_lost_one_is_reported(nodes: Nodes) -> None:
    nodes.says[TWO] = iter([AttemptFailed(LostConnection("gone"), sent=False)])

    def operation() -> Operation[Any]:
        return (yield Everywhere([("PING",)]))

    [(one, replies), (two, error)] = nodes.run(operation())

    assert (one, replies, two) == ("one:1", ["OK"], "two:2")
    assert isinstance(error, StoreUnavailable)


def alongside(reads: Batch, batch: Batch) -> Operation[Any]:
    return (yield Alongside(reads, batch))


def test_reads_alongside_a_batch_are_asked_of_their_own_node(nodes: Nodes) -> None:
    reads, batch = [("HGETALL", HIGH)], [("GET", LOW), ("SET", LOW, 1)]

    assert nodes.run(alongside(reads, batch)) == ([HIGH], [LOW, LOW])
    assert nodes.asked == [(TWO, reads), (ONE, batch)]


@pytest.mark.parametrize(
    "failure",
    [
        AttemptFailed(LostConnection("gone"), sent=True),
        [ClusterDownError("the slot is not served")],
        [MovedError(f"{key_slot(HIGH.encode())} one:1")],
    ],
    ids=["lost", "not served", "moved"],
)
def test_a_batch_does_not_wait_for_reads_alongside_it_that_fail(nodes: Nodes, failure: Any) -> None:
    nodes.says[TWO] = iter([failure])

    assert nodes.run(alongside([("HGETALL", HIGH)], [("SET", LOW, 1)])) == ([None], [LOW])
    assert (len(nodes.asked), nodes.paused) == (2, [])


def apart(*reads: tuple[Any, ...]) -> Operation[Any]:
    return (yield Apart(reads))


def test_a_lost_node_costs_reads_of_many_trees_its_own_alone(nodes: Nodes) -> None:
    nodes.says[TWO] = iter([AttemptFailed(LostConnection("gone"), sent=True)] * 2)

    one, two, three = nodes.run(apart(("GET", LOW), ("GET", HIGH), ("GET", LOW)))

    assert (one, three) == (LOW, LOW)
    assert isinstance(two, StoreUnavailable)
    assert nodes.paused == []


def test_a_node_that_returns_at_once_answers_reads_of_many_trees(nodes: Nodes) -> None:
    nodes.says[TWO] = iter([AttemptFailed(LostConnection("gone"), sent=True)])

    assert nodes.run(apart(("GET", LOW), ("GET", HIGH))) == [LOW, HIGH]


def test_reads_of_many_trees_wait_once_for_a_node_that_hangs(nodes: Nodes) -> None:
    nodes.says[TWO] = iter([AttemptFailed(LostReply("slow"), sent=True)])

    one, two = nodes.run(apart(("GET", LOW), ("GET", HIGH)))

    assert one == LOW
    assert isinstance(two, StoreUnavailable)
    assert len(nodes.asked) == 2


def test_reads_of_many_trees_follow_a_slot_that_has_moved(nodes: Nodes) -> None:
    slot = key_slot(HIGH.encode())
    nodes.says[TWO] = iter([[MovedError(f"{slot} one:1")], ["OK", HIGH]])
    nodes.says[ONE] = iter([[LOW], [AskError(f"{slot} two:2")]])

    assert nodes.run(apart(("GET", LOW), ("GET", HIGH))) == [LOW, HIGH]
    assert nodes.asked[-1] == (TWO, [("ASKING",), ("GET", HIGH)])


def test_a_request_without_a_key_goes_to_a_node_that_answers(nodes: Nodes) -> None:
    nodes.router = Router("the test", (ONE, TWO))
    nodes.ask(("GET", LOW))
    nodes.says[ONE] = iter([AttemptFailed(LostConnection("gone"), sent=False)] * 9)

    assert nodes.ask(("TIME",)) == ["OK"]
    assert [address for address, _ in nodes.asked] == [ONE, ONE, TWO]


def test_the_slot_map_of_a_node_without_slots_is_ignored(nodes: Nodes) -> None:
    nodes.first_maps = [[]]
    nodes.router = Router("the test", (TWO, ONE))

    assert nodes.ask(("GET", LOW)) == [LOW]


def test_a_cluster_without_slots_is_a_typed_error(nodes: Nodes) -> None:
    nodes.first_maps = [[], []]
    nodes.router = Router("the test", (TWO, ONE))

    with pytest.raises(StoreUnavailable, match="no slot yet"):
        nodes.ask(("GET", LOW))


def test_a_batch_is_split_at_its_transactions() -> None:
    batch = [("MULTI",), ("HSET", LOW, 1, "x"), ("EXEC",), ("GET", HIGH), ("INFO", "server")]

    assert [(unit.start, unit.size) for unit in units_of(batch)] == [(0, 3), (3, 1), (4, 1)]
    # a command without a key goes with the first that has one
    assert [unit.slot for unit in units_of(batch)] == [key_slot(b"b"), key_slot(b"a"), key_slot(b"b")]
    assert [unit.slot for unit in units_of([("TIME",)])] == [None]


def test_with_patience_nodes_that_are_asked_in_turn_share_it(nodes: Nodes) -> None:
    nodes.router = Router("the test", (TWO, ONE), 6.0)
    nodes.first_maps = [LostConnection("lost")]

    nodes.ask(("GET", LOW))

    first, second, read = nodes.waits
    assert first is not None
    assert second is not None
    assert read is not None
    assert 2.0 < first <= 3.0  # half of what is left is for the other node
    assert first < second <= 6.0
    assert second - 1 < read <= 5.0


def test_the_nodes_of_a_request_are_those_of_its_keys(nodes: Nodes) -> None:
    assert nodes.router.nodes_of([("GET", LOW)]) == ()
    nodes.ask(("GET", LOW))

    assert nodes.router.nodes_of([("GET", LOW), ("PING",)]) == (ONE,)
    assert nodes.router.nodes_of([("GET", HIGH), ("GET", LOW)]) == (ONE, TWO)
    assert nodes.router.nodes_of(Apart([("GET", HIGH), ("GET", LOW)])) == ()
    assert nodes.router.nodes_of(Everywhere([("INFO",)])) == (ONE, TWO)
