"""The queue between dispatchers, which make a process ready, and the workers that run it: the content of a
message, its delivery, and both sides surviving a Redis outage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from kombu import Connection, Queue
from kombu.asynchronous import Hub
from kombu.transport import redis as kombu_redis
from kombu.utils.url import url_to_parts

from fdstore.agents.runtime.broker_url import find_broker
from fdstore.agents.runtime.queue import Dispatcher, celery_app
from fdstore.errors import InvalidArgument, StartFailed, StoreFull, StoreUnavailable
from fdstore.local.redis_server import PrivateServer
from fdstore_workers import app
from fdstore_workers.app import make_app
from fdstore_workers.messages import envelope, process_of
from fdstore_workers.transport import Pauses, quote_url
from tests.refusals import refused
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, stretched, wait_until
from tests.with_workers.conftest import Ledger, StartWorker

LONGEST_ID = "a" * 48 + ".1000" * 8


@pytest.fixture
def dispatcher(redis_server: PrivateServer) -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(redis_server.url)
    yield dispatcher
    dispatcher.close()


def list_keys(server: PrivateServer) -> set[str]:
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        return set(client.keys("*"))


def queued_messages(server: PrivateServer) -> list[str]:
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        return client.lrange("fdq:fdstore:queue", 0, -1)


# What is sent


@pytest.mark.parametrize("process_id", ["triage.1", LONGEST_ID])
def test_a_message_carries_the_process_id_and_nothing_else(
    redis_server: PrivateServer, dispatcher: Dispatcher, process_id: str
) -> None:
    dispatcher.wake(process_id)

    [message] = queued_messages(redis_server)
    arguments, keywords, _ = json.loads(json.loads(message)["body"])
    assert (arguments, keywords) == ([process_id], {})
    assert process_of(message.encode()) == process_id
    assert message.count(process_id) == 1
    assert len(message) - len(process_id) < 1000


def test_the_queue_is_one_key(redis_server: PrivateServer, dispatcher: Dispatcher) -> None:
    dispatcher.wake("triage.1", "triage.2")

    assert list_keys(redis_server) == {"fdq:fdstore:queue"}
    assert len(queued_messages(redis_server)) == 2


def test_many_threads_can_send_through_one_dispatcher(
    redis_server: PrivateServer, dispatcher: Dispatcher
) -> None:
    ids = [f"triage.{number}" for number in range(40)]

    senders = [threading.Thread(target=dispatcher.wake, args=(one,)) for one in ids]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()

    sent = [json.loads(json.loads(message)["body"])[0][0] for message in queued_messages(redis_server)]
    assert sorted(sent) == sorted(ids)


def test_a_broker_restart_between_two_messages_raises_no_error(
    redis_server: PrivateServer, dispatcher: Dispatcher
) -> None:
    dispatcher.wake("before")

    redis_server.restart()
    dispatcher.wake("after")

    assert len(queued_messages(redis_server)) == 1


def test_a_dead_broker_is_reported_immediately(redis_server: PrivateServer, dispatcher: Dispatcher) -> None:
    dispatcher.wake("triage")
    redis_server.kill()

    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        dispatcher.wake("triage")
    assert time.monotonic() - began < stretched(2)

    redis_server.restart()
    dispatcher.wake("triage")


def test_a_broker_that_does_not_answer_is_reported_within_two_seconds(
    redis_server: PrivateServer, dispatcher: Dispatcher
) -> None:
    dispatcher.wake("triage")
    assert redis_server.pid is not None
    os.kill(redis_server.pid, signal.SIGSTOP)

    try:
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            dispatcher.wake("triage")
        assert time.monotonic() - began < stretched(2.5)
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)


def test_a_full_broker_is_reported_as_full(redis_server: PrivateServer, dispatcher: Dispatcher) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        client.config_set("maxmemory", 1)

    with pytest.raises(StoreFull):
        dispatcher.wake("triage")


def test_celery_variables_of_another_application_do_not_redirect_messages(
    redis_server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CELERY_BROKER_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND"):
        monkeypatch.setenv(name, "redis://127.0.0.1:1/0")
    dispatcher = Dispatcher(redis_server.url)

    dispatcher.wake("triage")
    dispatcher.close()

    assert len(queued_messages(redis_server)) == 1


THEIRS = """
import sys
print("their code", file=sys.stderr)
raise_at_import = {fails}
if raise_at_import:
    raise RuntimeError("theirs")
imports = ["no_such_module"]
worker_consumer = "no_such_module:Consumer"
task_compression = "gzip"
task_routes = {{"*": "elsewhere"}}
task_protocol = 1
task_always_eager = True
"""


@pytest.mark.parametrize("fails", [False, True])
def test_the_celery_configuration_of_another_application_is_not_read(
    redis_server: PrivateServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    fails: bool,
) -> None:
    (tmp_path / "their_config.py").write_text(THEIRS.format(fails=fails))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("CELERY_CONFIG_MODULE", "their_config")
    monkeypatch.setenv("CELERY_LOADER", "no_such_module:Loader")
    dispatcher = Dispatcher(redis_server.url)
    app = make_app(redis_server.url, run=lambda _: None)

    dispatcher.wake("triage")
    dispatcher.close()

    [message] = queued_messages(redis_server)
    assert process_of(message.encode()) == "triage"
    assert (app.conf.imports, app.conf.task_compression, app.conf.task_protocol) == ((), None, 2)
    assert "their code" not in capfd.readouterr().err


def test_a_celery_configuration_that_is_not_there_is_not_missed(
    redis_server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELERY_CONFIG_MODULE", "no_such_module")
    dispatcher = Dispatcher(redis_server.url)

    dispatcher.wake("triage")
    dispatcher.close()

    assert len(queued_messages(redis_server)) == 1


def test_importing_dispatch_imports_neither_celery_nor_redis() -> None:
    program = (
        "import sys, fdstore.agents.runtime.queue\n"
        "fdstore.agents.runtime.queue.Dispatcher('redis://localhost').close()\n"
        "print({'celery', 'kombu', 'redis'} & set(sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


# Where it is sent


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://db.example", "redis://db.example:6379/0"),
        ("redis://db.example:6380/3", "redis://db.example:6380/3"),
        ("redis://[::1]/?db=2", "redis://[::1]:6379/2"),
        ("rediss://db.example/1", "rediss://db.example:6379/1?ssl_cert_reqs=required"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("unix:///run/redis.sock?db=2", "redis+socket:///run/redis.sock?virtual_host=2"),
        ("sentinel://a,b:1/main/2", "sentinel://a:26379/2;sentinel://b:1/2"),
    ],
)
def test_a_store_url_is_converted_to_a_url_that_kombu_accepts(url: str, expected: str) -> None:
    assert find_broker(url).url == expected


def test_a_broker_url_takes_precedence_over_the_store_url() -> None:
    assert find_broker("redis+cluster://c1/0", "redis://q/0").url == "redis://q:6379/0"


def test_a_cluster_is_refused_as_broker_and_the_error_names_the_variable_to_set() -> None:
    with pytest.raises(InvalidArgument, match="set FDSTORE_BROKER_URL"):
        Dispatcher("redis+cluster://c1:7000/0")


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_kombu_parses_every_socket_path_correctly(name: str) -> None:
    url = find_broker(f"unix:///run/{quote(name)}").url

    for connection in (Connection(url), Connection(quote_url(url))):
        assert connection.hostname is not None
        read = url_to_parts(connection.hostname)
        assert (read.scheme, read.path) == ("socket", f"run/{name}")


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_kombu_parses_every_password_correctly_and_messages_never_show_it(password: str) -> None:
    broker = find_broker(f"redis://ann:{quote(password, safe='')}@db.example:6380/3")
    connection = Connection(broker.url)

    assert (connection.userid, connection.password) == ("ann", password)
    assert (connection.hostname, connection.port, connection.virtual_host) == ("db.example", 6380, "3")
    assert broker.shown == "redis://db.example:6380/3"


@pytest.mark.parametrize(
    "url",
    [
        *("redis://:open-sesame@db.example/0", "redis://open-sesame:@db.example/0"),
        *("unix://:open-sesame@/run/r.sock", "sentinel://:open-sesame@a,b/main"),
    ],
)
def test_a_worker_does_not_log_the_password_of_the_broker(url: str) -> None:
    connection = make_app(url, run=print).connection_for_read()

    for each in (connection, connection.clone()):
        assert "open-sesame" not in each.as_uri() + repr(each)
        assert each.as_uri() == find_broker(url).shown


def test_tls_certificates_are_checked_unless_the_url_says_otherwise() -> None:
    checked = celery_app(find_broker("rediss://db.example")).connection_for_write()
    unchecked = celery_app(find_broker("rediss://db.example?ssl_cert_reqs=none")).connection_for_write()

    assert checked.ssl["ssl_cert_reqs"].name == "CERT_REQUIRED"
    assert unchecked.ssl["ssl_cert_reqs"].name == "CERT_NONE"


# What workers do with it


def test_a_message_is_run_once_and_leaves_no_keys_behind(
    redis_server: PrivateServer, dispatcher: Dispatcher, ledger: Ledger, start_worker: StartWorker
) -> None:
    start_worker(redis_server.url)

    dispatcher.wake("triage.1", "triage.2")

    wait_until(lambda: sorted(ledger.ended) == ["triage.1", "triage.2"])
    wait_until(lambda: not list_keys(redis_server))
    assert sorted(ledger.started_ids) == ["triage.1", "triage.2"]


def test_a_task_that_raises_is_logged_and_the_worker_continues(
    durable_server: PrivateServer, ledger: Ledger, start_worker: StartWorker
) -> None:
    worker = start_worker(durable_server.url)
    dispatcher = Dispatcher(durable_server.url)

    dispatcher.wake("fail", "triage")
    dispatcher.close()

    wait_until(lambda: ledger.ended == ["triage"])
    wait_until(lambda: "as the test wished" in worker.log)
    wait_until(lambda: not list_keys(durable_server))


@pytest.mark.parametrize("pool", ["threads", *thorough("the other pool", "prefork")])
def test_on_sigterm_a_worker_finishes_its_task_and_exits_without_taking_another(
    durable_server: PrivateServer, ledger: Ledger, start_worker: StartWorker, pool: str
) -> None:
    worker = start_worker(durable_server.url, pool, concurrency=1)
    dispatcher = Dispatcher(durable_server.url)
    dispatcher.wake("hold")
    wait_until(lambda: ledger.started_ids == ["hold"])

    worker.terminate()
    wait_until(lambda: "takes nothing more" in worker.log)
    dispatcher.wake("next")
    dispatcher.close()
    ledger.release("hold")

    assert worker.process.wait(PATIENCE_S) == 0, worker.log
    assert ledger.started_ids == ledger.ended == ["hold"]
    assert list_keys(durable_server) == {"fdq:fdstore:queue"}


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_a_worker_that_is_killed_leaves_no_temporary_files(
    durable_server: PrivateServer,
    start_worker: StartWorker,
    pool: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    worker = start_worker(durable_server.url, pool)

    worker.kill()

    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("pool", ["threads", *thorough("the other pool", "prefork")])
def test_sigterm_ends_a_worker_whose_broker_is_dead(
    durable_server: PrivateServer, start_worker: StartWorker, pool: str
) -> None:
    worker = start_worker(durable_server.url, pool)
    durable_server.kill()
    wait_until(lambda: "Trying again" in worker.log)

    worker.terminate()

    assert worker.process.wait(PATIENCE_S) == 0, worker.log


def test_a_worker_reconnects_at_intervals_that_grow_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "RECONNECT_AFTER_S", 0.01)
    monkeypatch.setattr(app, "LONGEST_RECONNECT_S", 0.03)
    connection = make_app("redis://127.0.0.1:1", run=print).connection_for_read()
    pauses: list[float] = []

    def failed(error: Exception, pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        connection.ensure_connection(failed, None)

    assert pauses == pytest.approx([0.01, 0.02, 0.03, 0.03, 0.03])


@pytest.mark.parametrize(
    ("pool", "fan_out"),
    [
        ("threads", True),
        *thorough("the other pool", ("prefork", True)),
        *thorough("without the other subscription", ("threads", False), ("prefork", False)),
    ],
)
def test_a_worker_survives_a_broker_killed_during_its_task(
    durable_server: PrivateServer, ledger: Ledger, start_worker: StartWorker, pool: str, fan_out: bool
) -> None:
    worker = start_worker(durable_server.url, pool, fan_out=fan_out)
    dispatcher = Dispatcher(durable_server.url)
    dispatcher.wake("hold")
    wait_until(lambda: ledger.started_ids == ["hold"])

    durable_server.kill()
    threading.Event().wait(2)
    durable_server.restart()
    dispatcher.wake("after")
    dispatcher.close()

    wait_until(lambda: "after" in ledger.ended or not worker.is_alive)
    assert worker.is_alive, worker.log
    ledger.release("hold")
    wait_until(lambda: "hold" in ledger.ended)
    worker.terminate()
    assert worker.process.wait(PATIENCE_S) == 0, worker.log
    assert "Celery" not in worker.log


def test_a_task_that_ends_after_its_connection_was_lost_needs_none(durable_server: PrivateServer) -> None:
    connection = make_app(durable_server.url, run=print).connection_for_read()
    channel = connection.channel()
    received = envelope("triage")
    channel.basic_qos(0, 1, False)
    channel.qos.append(channel.Message(received, channel=channel), "tag")
    assert not channel.qos.can_consume()
    connection.close()
    durable_server.kill()

    channel.qos.ack("tag")

    assert channel.qos.can_consume()


def test_what_a_worker_has_received_is_in_no_key(
    durable_server: PrivateServer, ledger: Ledger, start_worker: StartWorker
) -> None:
    start_worker(durable_server.url)
    dispatcher = Dispatcher(durable_server.url)

    dispatcher.wake("hold")
    dispatcher.close()

    wait_until(lambda: ledger.started_ids == ["hold"])
    assert list_keys(durable_server) == set()


def test_a_version_of_kombu_that_makes_another_client_is_refused(
    durable_server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bare(*_: object, **__: object) -> redis.Redis:
        return redis.Redis.from_url(durable_server.url)

    monkeypatch.setattr(kombu_redis.Channel, "_create_client", bare)
    connection = make_app(durable_server.url, run=print).connection_for_read()

    with pytest.raises(StartFailed, match=r"kombu [\d.]+ has no Channel._get_client"):
        connection.channel()


def test_a_connection_that_is_lost_while_redis_refuses_is_made_again_and_receives(
    durable_server: PrivateServer,
) -> None:
    connection = make_app(durable_server.url, run=print).connection_for_read()
    received: list[Any] = []

    queue = Queue("queue", no_declare=True)
    consumer = connection.Consumer([queue], callbacks=[lambda _, message: received.append(message)])
    consumer.consume()
    loop = Hub()
    loop.call_repeatedly(0.1, lambda: None)  # so that a turn ends
    connection.register_with_event_loop(loop)

    def turn() -> bool:
        loop.run_once()
        return bool(received)

    wait_until(lambda: turn() or consumer.channel._in_poll)
    with refused(durable_server, "BUSY"):
        lost = consumer.channel.client.connection
        lost.disconnect()
        lost.next_health_check = 0  # so connecting begins with a PING, which is refused
        wait_until(lambda: turn() or not consumer.channel.pauses.is_over)
    dispatcher = Dispatcher(durable_server.url)
    dispatcher.wake("triage")
    dispatcher.close()

    wait_until(turn)
    connection.close()


def test_pauses_double_up_to_a_limit_and_end_with_a_reply() -> None:
    now = 0.0
    pauses = Pauses(lambda: now)

    def paused_s(error: str) -> float:
        nonlocal now
        pauses.begin(redis.ResponseError(error))
        began = now
        while not pauses.is_over:
            now += 0.25
        return now - began

    assert pauses.is_over
    assert [paused_s("WRONGTYPE no list") for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    pauses.end()
    assert [paused_s("READONLY a replica") for _ in range(5)] == [0.5, 1, 2, 4, 4]
