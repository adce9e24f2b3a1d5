"""Clients with patience: a store that does not answer is given up soon, and then at once."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from redis.exceptions import TimeoutError as LostReply

import fdstore
import fdstore.aio
from fdstore.client._async.store import Connector as AsyncConnector
from fdstore.client._async.store import Store as AsyncStore
from fdstore.client._sync.store import Connector, Store
from fdstore.errors import FDStoreError, InvalidArgument, StoreUnavailable, UnknownOutcome
from fdstore.local.redis_server import PrivateServer
from fdstore.wire._async.cluster import make_runner as make_async_runner
from fdstore.wire._async.support import connect_within as async_connect_within
from fdstore.wire._sync.cluster import make_runner
from fdstore.wire._sync.support import connect_within
from tests.loop_thread import LoopThread
from tests.outages import LOADING, SilentServer, advance, stopped
from tests.waiting import PATIENCE_S, stretched, wait_until

SOON = 0.2


class Colour:
    """The blocking client, or that of asyncio on a loop of its own. `do` returns the result of a call."""

    def __init__(self, loop: LoopThread | None) -> None:
        self._loop = loop
        self.stores: list[Any] = []
        self.connector: Any = Connector if loop is None else AsyncConnector

    def do(self, call: Callable[[], Any]) -> Any:
        if self._loop is None:
            return call()

        async def awaited() -> Any:
            return await call()

        return self._loop.do(awaited())

    def together(self, count: int, call: Callable[[], Any]) -> list[Any]:
        """Return the results or errors of calls at the same time."""

        def run(_: int) -> Any:
            try:
                return self.do(call)
            except FDStoreError as error:
                return error

        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(run, range(count)))

    def connect(self, url: str, **options: Any) -> Any:
        opening = fdstore.connect if self._loop is None else fdstore.aio.connect
        self.stores.append(self.do(lambda: opening(url, **options)))
        return self.stores[-1]

    def store(self, url: str, patience: float = SOON) -> Any:
        """Return a store that was never connected."""
        if self._loop is None:
            self.stores.append(Store(make_runner(url, patience), "fdstore", url))
        else:
            self.stores.append(AsyncStore(make_async_runner(url, patience), "fdstore", url))
        return self.stores[-1]


@pytest.fixture(params=["blocking", "asyncio"])
def colour(request: pytest.FixtureRequest) -> Iterator[Colour]:
    with ExitStack() as stack:
        loop = None
        if request.param == "asyncio":
            loop = LoopThread("patience")
            stack.callback(loop.close)
        made = Colour(loop)
        yield made
        for store in made.stores:
            made.do(store.close)


@pytest.fixture(autouse=True)
def usual_limits_that_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a call that waits for another limit than its patience hang."""
    for name in (
        *("connection_options.SOCKET_TIMEOUT_S", "connection_options.CONNECT_TIMEOUT_S"),
        *("retry.SOCKET_TIMEOUT_S", "retry.DEADLINE_S", "store_url.CONNECT_TIMEOUT_S"),
        *("_async.runner.SOCKET_TIMEOUT_S", "_sync.runner.SOCKET_TIMEOUT_S"),
    ):
        monkeypatch.setattr(f"fdstore.wire.{name}", 10 * PATIENCE_S)


@pytest.fixture
def silent() -> Iterator[SilentServer]:
    with SilentServer() as server:
        yield server


@pytest.fixture
def own_redis() -> Iterator[PrivateServer]:
    with PrivateServer() as server:
        yield server


def error_of(colour: Colour, call: Callable[[], Any]) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as caught:
        colour.do(call)
    return caught.value


def test_a_port_that_accepts_and_never_answers_is_given_up_and_then_left_alone(
    colour: Colour, silent: SilentServer
) -> None:
    connector = colour.connector(silent.url, None, patience=SOON)

    first = error_of(colour, connector.connect)
    later = [error_of(colour, connector.connect) for _ in range(20)]

    assert "no reply in time" in first.problem
    assert all("it is tried again in" in error.problem for error in later)
    assert silent.connections == 1


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster", "sentinel"])
def test_each_kind_of_store_is_given_up_and_then_left_alone(
    colour: Colour, silent: SilentServer, scheme: str
) -> None:
    store = colour.store(f"{scheme}://{silent.address}{'/primary' if scheme == 'sentinel' else ''}")

    error_of(colour, lambda: store.process("triage"))
    tried = silent.connections
    later = error_of(colour, lambda: store.process("triage"))

    assert "it is tried again in" in later.problem
    assert silent.connections == tried


def test_a_server_that_is_loading_for_ever_is_given_up(colour: Colour) -> None:
    with SilentServer(LOADING) as loading:
        store = colour.store(loading.url, patience=stretched(SOON))  # what it says is read

        first = error_of(colour, lambda: store.process("triage"))
        tried = loading.connections
        later = error_of(colour, lambda: store.process("triage"))

        assert "loading" in first.problem
        assert "it is tried again in" in later.problem
        assert loading.connections == tried


def test_a_host_that_drops_packets_is_given_up(colour: Colour) -> None:
    with ExitStack() as stack:
        # Linux drops what arrives at a port whose queue of connections is full
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        store = colour.store(f"redis://127.0.0.1:{full.getsockname()[1]}")

        assert "within 0.2 s" in error_of(colour, store.trees).problem
        assert "it is tried again in" in error_of(colour, store.trees).problem


def test_one_call_of_many_tries_a_store_again(colour: Colour, silent: SilentServer) -> None:
    store = colour.store(silent.url)
    error_of(colour, store.reach)

    advance(store, 1.5)
    problems = [str(error) for error in colour.together(20, store.reach)]

    assert silent.connections == 2
    assert sum("no reply in time" in problem for problem in problems) == 1


def test_a_stopped_server_costs_one_call_its_patience_and_the_next_ones_nothing(
    colour: Colour, own_redis: PrivateServer
) -> None:
    store = colour.connect(own_redis.url, patience=SOON)
    proc = colour.do(lambda: store.process("triage"))

    with stopped(own_redis):
        with pytest.raises(UnknownOutcome):
            colour.do(lambda: proc.create("may be stored"))
        later = [error_of(colour, lambda: proc.create("is not sent")) for _ in range(20)]

    assert all("it is tried again in" in error.problem for error in later)
    advance(store, 1.5)
    assert [d.chars for d in colour.do(proc.list)] in ([], [len("may be stored")])
    assert colour.do(lambda: proc.create("afterwards")).fd


def test_a_page_that_costs_one_request_is_given_up_too(colour: Colour, own_redis: PrivateServer) -> None:
    store = colour.connect(own_redis.url, patience=SOON)
    proc = colour.do(lambda: store.process("triage"))
    colour.do(lambda: proc.create("a line\n" * 5000))

    def page() -> Any:
        return proc.read("fd:1", start=2)

    text = colour.do(page).text
    with stopped(own_redis):
        assert "no reply in time" in error_of(colour, page).problem
        assert "it is tried again in" in error_of(colour, page).problem
    advance(store, 1.5)

    assert colour.do(page).text == text


def test_a_killed_server_is_used_again_once_it_is_back(colour: Colour, own_redis: PrivateServer) -> None:
    store = colour.connect(own_redis.url, patience=SOON)
    own_redis.kill()
    error_of(colour, store.trees)
    assert "it is tried again in" in error_of(colour, store.trees).problem

    own_redis.restart()

    def answers() -> bool:
        try:
            colour.do(store.trees)
        except StoreUnavailable:
            return False
        return True

    wait_until(answers, what="an answer")
    # after an answer the pauses begin again
    own_redis.kill()
    error_of(colour, store.trees)
    assert re.search(r"tried again in (1\.0|0\.\d) s", error_of(colour, store.trees).problem)


def test_a_long_upload_ends_when_the_server_stops(colour: Colour, own_redis: PrivateServer) -> None:
    store = colour.connect(own_redis.url, patience=SOON)
    proc = colour.do(lambda: store.process("triage"))
    parts = iter(range(20))

    class Source:
        def read(self, count: int = -1) -> bytes:
            number = next(parts, None)
            if number == 5:
                outage.enter_context(stopped(own_redis))
            return b"" if number is None else b"a line\n" * 100_000

    with ExitStack() as outage:
        [ended] = colour.together(1, lambda: proc.ingest(Source(), "up"))

    assert isinstance(ended, (StoreUnavailable, UnknownOutcome))


def test_a_plain_client_tries_every_time(colour: Colour) -> None:
    store = colour.store("redis://127.0.0.1:1")
    plain = colour.connector("redis://127.0.0.1:1", None)

    for _ in range(2):
        assert "Error 111" in error_of(colour, plain.connect).problem
    assert "Error 111" in error_of(colour, store.reach).problem
    assert "tried again" in error_of(colour, store.reach).problem


@pytest.mark.parametrize("patience", [0, -1.0, float("inf"), float("nan"), True, "1"])
def test_a_patience_that_is_no_time_is_refused(colour: Colour, patience: Any) -> None:
    with pytest.raises(InvalidArgument, match="patience: seconds above 0 are needed"):
        colour.connect("redis://127.0.0.1:1", patience=patience)


def test_a_store_with_patience_shares_the_keys_and_the_end_of_a_plain_one(
    colour: Colour, own_redis: PrivateServer
) -> None:
    plain = colour.connect(own_redis.url)
    patient = plain.with_patience(SOON)

    colour.do(lambda: patient.process("triage"))

    assert [tree.id for tree in colour.do(plain.trees)] == ["triage"]
    assert plain.with_patience(1) is patient.with_patience(1) is patient
    colour.do(plain.close)
    assert patient._runner._free == []


class Stuck:
    """A connection whose look-up of a name does not end by itself."""

    def __init__(self) -> None:
        self.ends = threading.Event()
        self.is_closed = threading.Event()

    def connect(self) -> None:
        self.ends.wait(PATIENCE_S)

    def disconnect(self) -> None:
        self.is_closed.set()


def test_an_attempt_to_connect_that_cannot_be_interrupted_is_left_behind_and_closed() -> None:
    stuck = Stuck()

    with pytest.raises(LostReply, match="no connection within"):
        connect_within(stuck, 0.05)

    assert not stuck.is_closed.is_set()
    stuck.ends.set()
    assert stuck.is_closed.wait(PATIENCE_S)


async def _never() -> None:
    await asyncio.Event().wait()


def test_an_attempt_to_connect_on_a_loop_is_cancelled() -> None:
    class Waiting:
        connect = staticmethod(_never)

    loop = LoopThread("connecting")
    with pytest.raises(LostReply, match="no connection within"):
        loop.do(async_connect_within(Waiting(), 0.05))
    loop.close()
