"""Sentinels with a password of their own, and with TLS: for the store and for the workers' queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

import fdstore
import fdstore.aio
from fdstore.agents.runtime.queue import Dispatcher
from fdstore.errors import FDStoreError
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import ScriptedModel
from tests.on_cluster.cluster import port_of, start_sentinel
from tests.on_cluster.doors import Authority, TlsProxy
from tests.waiting import wait_until, within
from tests.with_workers.conftest import agent_workers


class Guarded(NamedTuple):
    """URLs of the Redis behind the Sentinel: directly, and with TLS for both."""

    plain: str
    tls: str


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("sentinel")
    with ExitStack() as stack:
        options = {"requirepass": "redissecret", "masterauth": "redissecret"}
        server = stack.enter_context(PrivateServer(options, port=True))
        primary = port_of(server)
        config = "requirepass sentinelsecret", "sentinel auth-pass main redissecret"
        port = start_sentinel(stack, folder, server, *config, password="sentinelsecret")
        authority = Authority(folder)
        before_redis = stack.enter_context(TlsProxy(authority, primary))
        bulk = {b"$5\r\n%d\r\n" % primary: b"$5\r\n%d\r\n" % before_redis.port}
        before_sentinel = stack.enter_context(TlsProxy(authority, port, bulk))
        query = "sentinel_password=sentinelsecret"
        yield Guarded(
            f"sentinel://:redissecret@127.0.0.1:{port}/main?{query}",
            f"rediss+sentinel://:redissecret@127.0.0.1:{before_sentinel.port}/main"
            f"?{query}&ssl_ca_certs={authority.file}",
        )


@pytest.mark.parametrize("way", Guarded._fields)
async def test_the_store_is_reached_through_a_guarded_sentinel(guarded: Guarded, way: str) -> None:
    url = getattr(guarded, way)

    with fdstore.connect(url) as store:
        proc = store.process("triage")
        made = proc.create("stored\n")
        assert proc.read(made.fd).text == "stored\n"
        assert "secret" not in store.where
    async with await fdstore.aio.connect(url) as awaited:
        assert (await (await awaited.process("triage")).read("fd:1")).text == "stored\n"


@pytest.mark.parametrize("way", Guarded._fields)
@pytest.mark.parametrize(
    ("written", "instead", "kind", "said"),
    [
        ("sentinel_password=sentinelsecret", "", "permission_error", "sentinel_password"),
        ("sentinelsecret", "sentinelsecrex", "permission_error", "sentinel_password"),
        ("redissecret", "redissecrex", "permission_error", "check the user and the password"),
    ],
)
def test_a_refused_login_is_an_immediate_error(
    guarded: Guarded, way: str, written: str, instead: str, kind: str, said: str
) -> None:
    url = getattr(guarded, way).replace(written, instead)
    with within(5), pytest.raises(FDStoreError, match=said) as caught:
        fdstore.connect(url)

    assert caught.value.type == kind
    assert "secre" not in str(caught.value)


def test_a_certificate_of_an_unknown_authority_is_refused(guarded: Guarded) -> None:
    url = guarded.tls.partition("&ssl_ca_certs")[0]

    with pytest.raises(FDStoreError) as caught:
        fdstore.connect(url)

    assert caught.value.type == "store_unavailable"


@pytest.mark.parametrize("way", Guarded._fields)
def test_the_queue_is_reached_through_a_guarded_sentinel(guarded: Guarded, way: str, tmp_path: Path) -> None:
    url = getattr(guarded, way)
    with ScriptedModel([]) as model, agent_workers(tmp_path) as start_worker:
        worker = start_worker(url, model)
        dispatcher = Dispatcher(url)
        dispatcher.wake("nobody")
        dispatcher.close()

        wait_until(lambda: "nobody no longer exists" in worker.log or not worker.is_alive)

    assert "Traceback" not in worker.log
    assert "secret" not in worker.log
