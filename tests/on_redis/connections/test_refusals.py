"""A server that refuses and does nothing is waited for as one that does not answer."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
import redis

import fdstore
from fdstore.client import Process, Store
from fdstore.errors import (
    FDStoreError,
    StoreFull,
    StoreNotReady,
    StoreReadOnly,
    StoreUnavailable,
    StreamBroken,
)
from fdstore.local.redis_server import PrivateServer
from fdstore.wire import retry
from tests.on_redis.connections.test_patience import Colour
from tests.on_redis.connections.test_patience import colour as colour
from tests.on_redis.followers import Reader
from tests.outages import SilentServer, advance
from tests.refusals import CLIENT, WORK, lasting, refused
from tests.thorough import sample, thorough
from tests.waiting import PATIENCE_S, wait_until, within

LASTS_S = 0.7
SOON = 0.3


def started(call: Callable[[], Any]) -> Future[Any]:
    """Begin a call on a thread."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  raised by `result`
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


CALLS: dict[str, Callable[[Store, Process], Any]] = {
    "create": lambda store, proc: proc.create("short").fd,
    "a long text": lambda store, proc: proc.create("a line\n" * 100_000).fd,
    "spawn": lambda store, proc: proc.child().id,
    "close": lambda store, proc: proc.close("fd:1"),
}


@pytest.mark.parametrize("kind", sample(CLIENT, 2, "other refusals"))
@pytest.mark.parametrize("call", ["create", "a long text", *thorough("other writes", "spawn", "close")])
def test_a_write_waits_until_the_refusal_ends(
    kind: str, call: str, own_redis: PrivateServer, own_store: Store
) -> None:
    proc = own_store.process("triage")
    proc.create("before")

    with refused(own_redis, kind):
        waiting = started(lambda: CALLS[call](own_store, proc))
        lasting(LASTS_S)
        assert not waiting.done()

    assert waiting.result(PATIENCE_S) in ("fd:2", "triage.1", None)
    assert own_store.process("triage").create("after").fd in ("fd:2", "fd:3")


@pytest.mark.parametrize("kind", sample(CLIENT, 2, "other refusals"))
def test_a_write_waits_on_an_event_loop_too(kind: str, own_redis: PrivateServer, colour: Colour) -> None:
    store = colour.connect(own_redis.url)
    proc = colour.do(lambda: store.process("triage"))

    with refused(own_redis, kind):
        waiting = started(lambda: colour.do(lambda: proc.create("during")))
        lasting(LASTS_S)

    assert waiting.result(PATIENCE_S).fd == "fd:1"


@pytest.mark.parametrize("kind", ["BUSY", "MASTERDOWN"])
def test_a_read_and_a_connection_wait_where_nothing_is_served(
    kind: str, own_redis: PrivateServer, own_store: Store
) -> None:
    proc = own_store.process("triage")
    proc.create("before")
    other = own_redis.url + "?db=1"

    with refused(own_redis, kind):
        reading = started(lambda: proc.read("fd:1").text)
        connecting = [started(lambda url=url: fdstore.connect(url)) for url in (own_redis.url, other)]
        lasting(LASTS_S)

    assert reading.result(PATIENCE_S) == "before"
    for each in connecting:
        each.result(PATIENCE_S).close()


@pytest.mark.parametrize("kind", WORK)
def test_a_full_redis_or_disk_is_said_at_once_except_to_work_that_runs(
    kind: str, own_redis: PrivateServer, own_store: Store
) -> None:
    proc = own_store.process("triage")
    work = own_store.for_work().process("triage")

    with refused(own_redis, kind):
        with pytest.raises((StoreFull, StoreReadOnly)), within(2):
            proc.create("at once")
        waiting = started(lambda: work.create("a line\n" * 100_000).fd)
        lasting(LASTS_S)
        assert not waiting.done()

    assert waiting.result(PATIENCE_S) == "fd:1"


SAID = {
    "BUSY": (StoreNotReady, "Redis is busy with a script.*script kill"),
    "MASTERDOWN": (StoreNotReady, "a replica that has lost its primary"),
    "READONLY": (StoreReadOnly, "read only replica.*FDSTORE_URL"),
    "NOREPLICAS": (StoreReadOnly, "NOREPLICAS.*min-replicas-to-write"),
}


@pytest.mark.parametrize("kind", CLIENT)
def test_at_the_deadline_the_error_says_which_refusal_it_was_and_what_to_do(
    kind: str, own_redis: PrivateServer, own_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "DEADLINE_S", SOON)
    proc = own_store.process("triage")
    error_class, words = SAID[kind]

    with refused(own_redis, kind), pytest.raises(error_class, match=words) as caught:
        proc.create("refused")

    assert kind == "READONLY" or "check FDSTORE_URL" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (type(caught.value), str(caught.value))
    assert proc.list() == []


@pytest.mark.parametrize("kind", CLIENT)
def test_with_patience_one_call_waits_and_the_next_ones_fail_at_once_with_the_same_error(
    kind: str, own_redis: PrivateServer, colour: Colour
) -> None:
    store = colour.connect(own_redis.url, patience=SOON)
    proc = colour.do(lambda: store.process("triage"))
    error_class, words = SAID[kind]

    def refusal() -> FDStoreError:
        with pytest.raises(error_class, match=words) as caught:
            colour.do(lambda: proc.create("refused"))
        return caught.value

    with refused(own_redis, kind):
        refusal()
        with within(SOON * 10):
            assert all("tried again in" in str(refusal()) for _ in range(20))
        if kind in ("NOREPLICAS", "READONLY"):
            assert colour.do(proc.list) == []  # reads go on

    advance(store, 60)
    assert colour.do(lambda: proc.create("afterwards")).fd == "fd:1"


@pytest.mark.parametrize("kind", sample([*CLIENT, *WORK], 2, "other refusals"))
def test_a_stream_that_is_written_goes_on_after_the_refusal(
    kind: str, own_redis: PrivateServer, own_store: Store
) -> None:
    proc = own_store.process("triage")
    out = proc.open_stream()
    out.write("before\n")
    out.flush()

    with refused(own_redis, kind):
        out.write("during\n")
        ending = started(out.end)
        lasting(LASTS_S)
        assert not ending.done()

    ending.result(PATIENCE_S)
    read = own_store.process("triage").read(out.fd, read_all=True)
    assert (read.text, read.eof) == ("before\nduring\n", True)


def test_a_stream_whose_end_was_refused_ends_when_the_store_takes_writes_again(
    own_redis: PrivateServer, own_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc = own_store.process("triage")
    out = proc.open_stream()
    out.write("all of it\n")
    monkeypatch.setattr(retry, "DEADLINE_S", SOON)

    with refused(own_redis, "NOREPLICAS"), pytest.raises(StoreReadOnly):
        out.end(exit_code=3)

    wait_until(lambda: proc.stat(out.fd).state == "sealed", what="its end")
    assert (proc.stat(out.fd).exit_code, proc.read(out.fd).text) == (3, "all of it\n")
    out.end()


def test_a_stream_whose_failure_was_refused_breaks_for_its_reason(
    own_redis: PrivateServer, own_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc = own_store.process("triage")
    out = proc.open_stream()
    monkeypatch.setattr(retry, "DEADLINE_S", SOON)

    with refused(own_redis, "NOREPLICAS"), pytest.raises(StoreReadOnly):
        out.fail("disk full")

    reader = Reader(proc, out.fd)
    reader.done()
    assert isinstance(reader.error, StreamBroken)
    assert reader.error.reason == "disk full"


def blocked(client: redis.Redis) -> list[str]:
    return [each["id"] for each in client.client_list() if "b" in each["flags"]]


def test_a_follower_goes_on_after_the_server_ended_its_wait(
    own_redis: PrivateServer, own_store: Store
) -> None:
    proc = own_store.process("triage")
    with proc.open_stream() as out, redis.Redis.from_url(own_redis.url, protocol=2) as client:
        reader = Reader(proc, out.fd)
        for number in range(3):
            waiting: list[str] = []
            wait_until(lambda waiting=waiting: waiting.extend(blocked(client)) or waiting)
            client.client_unblock(waiting[0], error=True)
            out.write(f"{number}\n")
            out.flush()
            wait_until(lambda number=number: reader.text.endswith(f"{number}\n"))

    assert reader.done() == "0\n1\n2\n"


@pytest.mark.thorough("a seldom moment")
def test_a_read_that_waits_does_not_wait_longer_after_the_server_ended_its_wait(
    own_redis: PrivateServer, own_store: Store
) -> None:
    proc = own_store.process("triage")
    with proc.open_stream() as out, redis.Redis.from_url(own_redis.url, protocol=2) as client:
        out.write("a\n")
        out.flush()
        reading = started(lambda: proc.read(out.fd, wait=2.0).text)
        with within(4):
            while not reading.done():
                for each in blocked(client):
                    client.client_unblock(each, error=True)

        assert reading.result() == "a\n"


@pytest.mark.parametrize("kind", sample(CLIENT, 2, "other refusals"))
def test_a_follower_goes_on_through_a_refusal(kind: str, own_redis: PrivateServer, own_store: Store) -> None:
    proc = own_store.process("triage")
    with proc.open_stream() as out:
        out.write("before\n")
        out.flush()
        reader = Reader(proc, out.fd)
        reader.wait_for("before\n")
        with refused(own_redis, kind):
            out.write("during\n")
            lasting(LASTS_S)

    assert reader.done() == "before\nduring\n"


@pytest.mark.parametrize(
    "code",
    ["BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "NOREPLICAS", "READONLY", "TRYAGAIN", "UNBLOCKED"],
)
def test_a_server_that_refuses_for_ever_is_given_up(code: str, colour: Colour) -> None:
    with SilentServer(f"-{code} said the server\r\n".encode()) as server:
        store = colour.store(server.url, SOON)

        with pytest.raises((StoreUnavailable, StoreReadOnly)), within(SOON * 20):
            colour.do(lambda: store.process("triage"))
