"""Malformed messages: each is dropped with one log line, and the worker continues.

Raw bytes are put into the queue key of a real Redis, from which a real worker takes them. The order is
random; its seed is printed.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import lzma
import os
import pickle
import random
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from fdstore.agents.runtime.queue import Dispatcher
from fdstore.local.redis_server import PrivateServer
from fdstore_workers import messages
from tests import refusals
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, wait_until
from tests.with_workers.conftest import Ledger, StartWorker
from tests.worker_process import WorkerProcess

QUEUE = "fdq:fdstore:queue"
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "bzip2": bz2.compress,
    "application/x-bz2": bz2.compress,
    "gzip": gzip.compress,
    "application/x-gzip": gzip.compress,
    "zlib": zlib.compress,
    "lzma": lzma.compress,
    "application/x-lzma": lzma.compress,
}
WRONG: list[Any] = [None, True, 7, -1, 1.5, 10**30, "x", "", [], [1], {}, {"a": 1}]


GOOD = messages.envelope("triage")


def message(process: object = "triage", **changes: Any) -> dict[str, Any]:
    """A valid message about `process`, with top-level fields replaced."""
    return GOOD | {"body": json.dumps([[process], {}, {}])} | changes


def with_headers(**changes: Any) -> dict[str, Any]:
    good = message()
    return good | {"headers": good["headers"] | changes}


def with_properties(**changes: Any) -> dict[str, Any]:
    good = message()
    return good | {"properties": good["properties"] | changes}


def without(*path: str) -> dict[str, Any]:
    made = json.loads(json.dumps(message()))
    inner = made
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return dict(made)


def refused() -> list[bytes]:
    """Messages without a process id, or with one in another format."""
    encoded: list[dict[str, Any]] = [
        *(message(body=wrong) for wrong in WRONG),
        *(message(body=json.dumps(wrong)) for wrong in WRONG),
        *(message(wrong) for wrong in WRONG if wrong != "x"),
        message(body="[" * 3000 + "]" * 3000),
        message(body='{"a":' * 1000 + "1" + "}" * 1000),
        message(body=json.dumps([["triage"], {"process_id": "x"}, {}])),
        message(body=json.dumps([["triage", "more"], {}, {}])),
        message(body=json.dumps([{"0": "triage"}, {}, {}])),
        message(body=json.dumps(["triage", {}, {}])),
        message(body=json.dumps([["triage"], [], {}])),
        message(body="not JSON at all"),
        message(body="NaN"),
        message("x" * 10_000_000),
        message("a" * 201),
        message("triage\x1b]0;owned\x07\x1b[2J"),
        message("triage\n2026-01-01 ERROR forged line"),
        message("../../etc"),
        message("Triage"),
        message("triage.0"),
        message("tr\u0131age"),
        message("\ud800"),
        *(message(**{"content-type": kind}) for kind in [*WRONG, "application/data", "text/plain"]),
        *(message(**{"content-encoding": kind}) for kind in [*WRONG, "binary", "no-such-codec", "idna"]),
        *(
            message(
                base64.b64encode(pickle.dumps(["triage"])).decode(),
                **{"content-type": kind, "content-encoding": "binary"},
            )
            for kind in ("application/x-python-serialize", "application/x-yaml", "application/x-msgpack")
        ),
        *(message(headers=wrong) for wrong in WRONG),
        *(message(properties=wrong) for wrong in WRONG),
        *(
            with_headers(task=wrong)
            for wrong in [*WRONG, "celery.chord", "celery.backend_cleanup", "os.system"]
        ),
        *(with_headers(compression=wrong) for wrong in [*WRONG[1:], *COMPRESSORS]),
        *(with_properties(body_encoding=wrong) for wrong in [*WRONG, "base64", "utf-16"]),
        *(without(name) for name in ("body", "content-type", "content-encoding", "headers", "properties")),
        without("headers", "task"),
        without("properties", "body_encoding"),
        *({"task": "fdstore.run", "id": "1", "args": ["triage"], "kwargs": wrong} for wrong in WRONG),
    ]
    for name, compress in COMPRESSORS.items():
        bomb = compress(b"[" + b" " * 3_000_000 + b"]")
        body = base64.b64encode(bomb).decode()
        made = with_headers(compression=name)
        encoded.append(made | {"body": body, "properties": made["properties"] | {"body_encoding": "base64"}})
    raw = [json.dumps(each).encode() for each in encoded]
    raw += [json.dumps(wrong).encode() for wrong in WRONG]
    raw += [b"", b"\0", b"\xff\xfe\x00garbage", b"{", b'{"body":', b"[" * 100_000, b"\x80\x04\x95", b"NaN"]
    raw += [json.dumps(message()).encode("utf-16"), b"\xef\xbb\xbf" + json.dumps(message()).encode()]
    return raw


def taken() -> list[bytes]:
    """Messages with a valid process id and other content that must have no effect."""
    call_back = {"task": "fdstore.run", "args": ["called-back"], "options": {}}
    embedded = {"callbacks": [call_back], "errbacks": [call_back], "chain": [call_back], "chord": call_back}
    later = "2999-01-01T00:00:00+00:00"
    encoded = [
        message(),
        message(body=json.dumps([["triage"], {}, embedded])),
        message(body=json.dumps([["triage"], {}, 7])),
        *(with_headers(eta=each) for each in [later, *WRONG]),
        *(with_headers(expires=each) for each in ["1970-01-01T00:00:00", *WRONG]),
        *(with_headers(retries=each) for each in [10**9, *WRONG]),
        *(with_headers(timelimit=each) for each in [[0.001, 0.001], *WRONG]),
        *(with_headers(id=each, root_id=each) for each in ["\x1b[2J", "x" * 2000, *WRONG]),
        *(with_headers(**{name: each}) for name in ("lang", "group", "shadow", "origin") for each in WRONG),
        *(with_headers(argsrepr=each, kwargsrepr=each) for each in WRONG),
        *(with_headers(stamped_headers=each, stamps=each) for each in WRONG),
        *(with_properties(reply_to=each, correlation_id=each) for each in WRONG),
        *(with_properties(delivery_tag=each) for each in ["the same", *WRONG]),
        *(with_properties(delivery_info=each) for each in [{"routing_key": "other"}, *WRONG]),
        *(with_properties(priority=each) for each in WRONG),
        without("properties", "delivery_tag"),
        without("headers", "id"),
    ]
    return [json.dumps(each).encode() for each in encoded]


def test_a_malformed_message_is_refused_with_one_printable_line() -> None:
    for raw in refused():
        with pytest.raises(messages.ForeignMessage) as reason:
            pytest.fail(f"{raw[:300]!r} says {messages.process_of(raw)}")
        assert str(reason.value).isprintable(), raw[:300]
        assert len(str(reason.value)) < 300, raw[:300]


def test_only_the_process_id_is_read_from_a_message() -> None:
    assert {raw: messages.process_of(raw) for raw in taken()} == dict.fromkeys(taken(), "triage")


@given(st.binary(max_size=300) | st.text().map(str.encode))
def test_any_bytes_give_a_process_id_or_a_refusal(raw: bytes) -> None:
    with pytest.raises(messages.ForeignMessage):
        messages.process_of(raw)


def wait_for_valid_message(server: PrivateServer, ledger: Ledger, worker: WorkerProcess) -> None:
    dispatcher = Dispatcher(server.url)
    dispatcher.wake("good")
    dispatcher.close()
    wait_until(lambda: "good" in ledger.ended or not worker.is_alive)
    assert worker.is_alive, worker.log[-3000:]


@pytest.mark.thorough("hundreds of messages")
@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_hundreds_of_hostile_messages_in_any_order_do_not_end_the_worker(
    durable_server: PrivateServer, ledger: Ledger, start_worker: StartWorker, pool: str
) -> None:
    seed = int(os.environ.get("QUEUE_SEED", time.time_ns() % 10**6))
    print(f"QUEUE_SEED={seed}")
    bad, good = refused(), taken()
    order = bad + good
    random.Random(seed).shuffle(order)
    worker = start_worker(durable_server.url, pool)
    with redis.Redis.from_url(durable_server.url) as client:
        for raw in order:
            client.lpush(QUEUE, raw)

        wait_for_valid_message(durable_server, ledger, worker)

        wait_until(lambda: client.keys() == [])
    assert set(ledger.started_ids) == {"triage", "good"}
    assert ledger.started_ids.count("triage") == len(good), worker.log[-3000:]
    lines = [line for line in worker.log.splitlines() if line]
    assert sum("dropped a message" in line for line in lines) == len(bad)
    assert [line for line in lines if len(line) > 500 or not line.isprintable()] == []
    assert "Traceback" not in worker.log


@pytest.mark.thorough("messages of all other sizes are in the test above")
def test_a_message_of_64_megabytes_is_dropped_with_one_line_in_bounded_memory(
    durable_server: PrivateServer, ledger: Ledger, start_worker: StartWorker
) -> None:
    worker = start_worker(durable_server.url)
    with redis.Redis.from_url(durable_server.url) as client:
        wait_for_valid_message(durable_server, ledger, worker)
        before = peak_memory_kb(worker)
        client.lpush(QUEUE, json.dumps(message("x" * (64 << 20))))
        ledger.forget()

        wait_for_valid_message(durable_server, ledger, worker)

    assert worker.log.count("dropped a message of more than") == 1
    assert peak_memory_kb(worker) - before < 20_000
    assert "Traceback" not in worker.log


def peak_memory_kb(worker: WorkerProcess) -> int:
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.thorough("a seldom moment")
@pytest.mark.parametrize("pool", ["threads", *thorough("the other pool", "prefork")])
def test_a_worker_recovers_when_a_queue_of_the_wrong_type_is_removed(
    durable_server: PrivateServer, ledger: Ledger, start_worker: StartWorker, pool: str
) -> None:
    worker = start_worker(durable_server.url, pool)
    dispatcher = Dispatcher(durable_server.url)
    with redis.Redis.from_url(durable_server.url) as client:
        dispatcher.wake("hold")
        wait_until(lambda: ledger.started_ids == ["hold"])
        client.delete(QUEUE)
        client.set(QUEUE, "a string")
        wait_until(lambda: "refused: WRONGTYPE" in worker.log or not worker.is_alive)
        ledger.release("hold")
        wait_until(lambda: "hold" in ledger.ended or not worker.is_alive)
        client.delete(QUEUE)

    dispatcher.close()
    wait_for_valid_message(durable_server, ledger, worker)


@pytest.mark.parametrize("started", thorough("it waits for pauses that grow", "before", "after"))
def test_a_string_in_place_of_the_queue_is_said_once_and_asked_for_ever_less_often(
    durable_server: PrivateServer, ledger: Ledger, start_worker: StartWorker, started: str
) -> None:
    with redis.Redis.from_url(durable_server.url) as client:

        def refusals() -> int:
            return int(client.info("errorstats").get("errorstat_WRONGTYPE", {}).get("count", 0))

        if started == "after":
            client.set(QUEUE, "a string")
        worker = start_worker(durable_server.url)
        if started == "before":
            wait_for_valid_message(durable_server, ledger, worker)
            client.set(QUEUE, "a string")
        before = len(worker.log.splitlines())

        wait_until(lambda: refusals() >= 5 or not worker.is_alive, what="five refusals")

        assert worker.log.count("refused: WRONGTYPE") == 1
        assert len(worker.log.splitlines()) <= before + 2, worker.log
        client.delete(QUEUE)
        ledger.forget()
        wait_for_valid_message(durable_server, ledger, worker)


def test_a_worker_outlives_a_redis_that_refuses_even_to_be_asked_whether_it_is_there(
    durable_server: PrivateServer, ledger: Ledger, start_worker: StartWorker
) -> None:
    worker = start_worker(durable_server.url)
    dispatcher = Dispatcher(durable_server.url)
    dispatcher.wake("hold")
    dispatcher.close()
    wait_until(lambda: ledger.started_ids == ["hold"])

    with redis.Redis.from_url(durable_server.url) as client, refusals.refused(durable_server, "MISCONF"):
        client.client_kill_filter(_type="normal", skipme=True)
        wait_until(lambda: "MISCONF" in worker.log or not worker.is_alive)
    ledger.release("hold")

    wait_until(lambda: "hold" in ledger.ended or not worker.is_alive)
    wait_for_valid_message(durable_server, ledger, worker)


def test_no_other_key_of_the_queue_is_read_or_written(
    durable_server: PrivateServer, ledger: Ledger, start_worker: StartWorker
) -> None:
    theirs = ["fdq:fdstore:unacked", "fdq:fdstore:unacked_index", "fdq:fdstore:unacked_mutex"]
    with redis.Redis.from_url(durable_server.url) as client:
        client.mset(dict.fromkeys(theirs, "a string"))
        worker = start_worker(durable_server.url)

        wait_for_valid_message(durable_server, ledger, worker)
        worker.terminate()
        worker.process.wait(PATIENCE_S)

        assert sorted(client.keys()) == sorted(each.encode() for each in theirs)
    assert "refused" not in worker.log
