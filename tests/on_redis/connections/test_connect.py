"""Connecting: every form of URL, and clear errors."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fdstore
import fdstore.aio
from fdstore.client import Store
from fdstore.errors import (
    FDStoreError,
    InvalidArgument,
    StoreRefused,
    StoreUnavailable,
    UnsafeStore,
)
from fdstore.local.redis_server import PrivateServer
from tests.waiting import within


def connects(url: str | None = None, prefix: str | None = None) -> Store:
    return fdstore.connect(url, prefix)


def connects_async(url: str | None = None, prefix: str | None = None) -> None:
    async def main() -> None:
        async with await fdstore.aio.connect(url, prefix):
            pass

    asyncio.run(main())


BOTH = pytest.mark.parametrize("connect", [connects, connects_async])


@pytest.fixture(scope="module")
def by_tcp() -> Iterator[PrivateServer]:
    with PrivateServer({"requirepass": "s3cret"}, port=True) as server:
        yield server


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@BOTH
def test_an_absent_server_is_an_immediate_clear_error(connect: Any, closed_port: int) -> None:
    with within(2), pytest.raises(StoreUnavailable, match="FDSTORE_URL") as caught:
        connect(f"redis://:hidden@127.0.0.1:{closed_port}/0")

    assert f"127.0.0.1:{closed_port}" in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@BOTH
def test_an_absent_socket_is_an_immediate_error(connect: Any, tmp_path: Path) -> None:
    with within(2), pytest.raises(StoreUnavailable, match=r"no\.sock"):
        connect(f"unix://{tmp_path}/no.sock")


@BOTH
def test_an_unresolvable_host_is_an_error(connect: Any) -> None:
    with pytest.raises(StoreUnavailable):
        connect("redis://name.invalid:6379/0")


@BOTH
@pytest.mark.parametrize(
    "url",
    ["http://localhost", "localhost:6379", "redis://localhost:port", "redis://localhost:99999", "redis:"],
)
def test_an_invalid_url_is_refused(connect: Any, url: str) -> None:
    with pytest.raises(FDStoreError) as caught:
        connect(url)
    assert caught.value.type in ("invalid_argument", "store_unavailable")


@BOTH
@pytest.mark.parametrize("prefix", ["a b", "{a}", "a}", "a\n", "x" * 65, "é", "*", "a/b"])
def test_a_prefix_that_could_break_keys_is_refused(connect: Any, redis_url: str, prefix: str) -> None:
    with pytest.raises(InvalidArgument, match="prefix"):
        connect(redis_url, prefix)


@BOTH
def test_a_server_that_evicts_is_refused(connect: Any, redis_url: str, execute: Any) -> None:
    execute("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(UnsafeStore, match=r"allkeys-lru.*noeviction"):
            connect(redis_url)
    finally:
        execute("CONFIG", "SET", "maxmemory-policy", "noeviction")


@pytest.fixture
def make_evicting(store: Store, execute: Any) -> Iterator[Callable[[], None]]:
    """`make_evicting()` sets an unsafe policy and makes the tree `t` check it again."""

    def set_policy() -> None:
        execute("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
        execute("HINCRBYFLOAT", "fdstore:{t}", "checked_at", "-60")

    yield set_policy
    execute("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_a_connected_client_detects_that_its_server_evicts(
    store: Store, execute: Any, make_evicting: Callable[[], None]
) -> None:
    proc = store.process("t")
    proc.create("before")
    with proc.open_stream() as out:
        out.write("before")
        out.flush()
        make_evicting()
        before = store.tree("t")

        out.write(" and after")
        for makes in (
            lambda: proc.create("x"),
            lambda: proc.create("x" * 3_000_000),
            lambda: proc.extract("fd:1#C1-2"),
            proc.open_stream,
            proc.child,
            proc.fork,
            out.flush,
            lambda: store.process("another"),
        ):
            with pytest.raises(UnsafeStore, match=r"volatile-ttl.*fdstore doctor"):
                makes()
        assert store.tree("t") == before
        assert proc.read("fd:1").text == "before"  # existing contents can be read and dropped
        proc.close("fd:1")

        execute("CONFIG", "SET", "maxmemory-policy", "noeviction")
        out.flush()
    assert proc.read(out.fd).text == "before and after"
    assert proc.create("x").fd == "fd:3"


async def test_awaitable_clients_detect_an_evicting_server_too(
    redis_url: str, store: Store, make_evicting: Callable[[], None]
) -> None:
    async with await fdstore.aio.connect(redis_url) as connected:
        proc = await connected.process("t")
        make_evicting()
        with pytest.raises(UnsafeStore, match="volatile-ttl"):
            await proc.create("x")


def test_stores_with_different_prefixes_are_separate(redis_url: str, execute: Any) -> None:
    with fdstore.connect(redis_url, prefix="one") as one, fdstore.connect(redis_url, prefix="two:b") as two:
        one.process("t").create("first")
        two.process("t").create("second")

        assert one.process("t").read("fd:1").text == "first"
        assert two.process("t").read("fd:1").text == "second"
        assert all(key.startswith((b"one:", b"two:b:")) for key in execute("KEYS", "*"))


def test_the_store_url_comes_from_the_environment(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FDSTORE_URL", redis_url)
    monkeypatch.setenv("FDSTORE_PREFIX", "ours")

    with fdstore.connect() as store:
        assert (store.url, store.prefix) == (redis_url, "ours")


def test_the_url_argument_overrides_the_environment(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FDSTORE_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("FDSTORE_PREFIX", "ours")

    with fdstore.connect(redis_url, prefix="mine") as store:
        assert (store.url, store.prefix) == (redis_url, "mine")


# --- forms of URL


def test_a_server_with_a_password_is_reached_by_tcp(by_tcp: PrivateServer) -> None:
    url = by_tcp.url.replace("redis://", "redis://:s3cret@")

    with fdstore.connect(url) as store:
        assert store.process("t").create("x").fd == "fd:1"
        assert "s3cret" not in repr(store)
        assert "s3cret" not in store.where


@BOTH
@pytest.mark.parametrize("user", ["", ":wrong@"])
def test_a_wrong_password_is_an_immediate_error_without_retries(
    connect: Any, by_tcp: PrivateServer, user: str
) -> None:
    with within(2), pytest.raises(StoreRefused, match=r"(?i)auth|password") as caught:
        connect(by_tcp.url.replace("redis://", f"redis://{user}"))

    assert "wrong" not in str(caught.value).replace("WRONGPASS", "")


def test_a_unix_socket_url_accepts_a_database_and_a_password(tmp_path: Path) -> None:
    with PrivateServer({"requirepass": "s3cret"}) as server:
        url = server.url.replace("unix://", "unix://:s3cret@") + "?db=3"
        with fdstore.connect(url) as store:
            assert store.process("t").create("x").fd == "fd:1"
