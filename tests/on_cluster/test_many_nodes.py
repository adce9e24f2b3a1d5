"""Trees are spread over all nodes of a Cluster, transparently to clients."""

from __future__ import annotations

import asyncio
import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

import fdstore
import fdstore.aio
from fdstore.cli import cli
from fdstore.client import Store
from fdstore.errors import FDStoreError, InvalidArgument, NotFound, StoreUnavailable, UnsafeStore
from fdstore.local.redis_server import PrivateServer
from fdstore.store.keys import TreeKeys
from fdstore.store.processes import leases
from fdstore.store.streams import due_streams
from fdstore.store.trees import ceilings, collect_trees
from tests.on_cluster.cluster import Cluster, Move
from tests.on_redis.conftest import Execute
from tests.servers import users_file, version_of
from tests.stored_keys import Stored
from tests.waiting import within

NAMES = [f"tree-{number}" for number in range(12)]
TEXT = "".join(f"line {number} of a text\n" for number in range(1, 30_001))


def nodes_of(cluster: Cluster, names: list[str]) -> set[int]:
    return {cluster.node_of(f"{{{name}}}").port for name in names}


def test_every_operation_works_on_trees_of_every_node(cluster: Cluster, store: Store, tmp_path: Path) -> None:
    assert len(nodes_of(cluster, NAMES)) == 3

    for name in NAMES:
        proc = store.process(name)
        small = proc.create("one\ntwo\n")
        big = proc.ingest(io.BytesIO(TEXT.encode()), source="log")
        assert proc.read(big.fd, read_all=True).text == TEXT
        assert proc.read(f"{big.fd}#L120-121").text == "line 120 of a text\nline 121 of a text\n"
        assert proc.read(big.fd, mode="char", start=6).text == "1"
        assert proc.search(big.fd, "line 2999[0-9]").matches == 10
        assert proc.extract(f"{big.fd}#L7").chars == len("line 7 of a text\n")
        assert proc.export(big.fd, tmp_path / name).size_bytes == len(TEXT)
        child, twin = proc.child(share=[small.fd]), proc.fork()
        assert child.read(small.fd, start=1).text == twin.read(small.fd).text == "one\ntwo\n"
        with proc.open_stream() as out:
            out.write("written")
        assert "".join(proc.follow(out.fd)) == "written"
        child.close(small.fd)
        twin.end()

    assert sorted(tree.id for tree in store.trees()) == sorted(NAMES)
    assert len(store.processes()) == 3 * len(NAMES)


async def test_the_awaitable_client_works_on_trees_of_every_node(cluster: Cluster) -> None:
    async def use(store: fdstore.aio.Store, name: str) -> None:
        proc = await store.process(name)
        big = await proc.ingest(io.BytesIO(TEXT.encode()), source="log")
        assert (await proc.read(big.fd, read_all=True)).text == TEXT
        child = await proc.child(share=[big.fd])
        assert (await child.read("fd:1#L9")).text == "line 9 of a text\n"
        async with await proc.open_stream() as out:
            await out.write("written")
        assert "".join([piece async for piece in proc.follow(out.fd)]) == "written"

    async with await fdstore.aio.connect(cluster.url) as store:
        await asyncio.gather(*(use(store, name) for name in NAMES))
        assert sorted(tree.id for tree in await store.trees()) == sorted(NAMES)


def test_the_sweep_and_the_collection_find_trees_on_every_node(
    cluster: Cluster, store: Store, execute: Execute
) -> None:
    pens = [store.process(name).open_stream() for name in NAMES]
    late = 4e9

    due = store.run(due_streams.find_due(store.prefix, NAMES, late)).streams
    assert sorted(tree.tree for tree, _ in due) == sorted(NAMES)
    assert store.run(leases.find_due(store.prefix, NAMES, late)).processes == []
    for appender in pens:
        appender.end()
    for name in NAMES:
        execute("HSET", TreeKeys("fdstore", name).record, "used_at", 0)
    for tree in list(store.run(collect_trees.due_trees(store.prefix, late))):
        assert store.run(collect_trees.collect_tree(tree)).outcome == "gone"

    assert store.trees() == []
    left = {key for key in execute("KEYS", "*") if b":op:" not in key}
    assert left == {TreeKeys("fdstore", name).earlier_numbers.encode() for name in NAMES}


def test_scripts_are_loaded_again_on_a_node_that_lost_them(cluster: Cluster, store: Store) -> None:
    procs = [store.process(name) for name in NAMES]
    for node in cluster.nodes:
        node.ask("SCRIPT", "FLUSH")

    for proc in procs:
        assert proc.create("text").fd == "fd:1"


def test_the_error_for_an_unknown_tree_names_trees_of_all_nodes(store: Store) -> None:
    for name in NAMES:
        store.process(name)

    with pytest.raises(NotFound) as caught:
        store.tree("nowhere")

    assert set(NAMES) <= set(caught.value.known)


def test_many_threads_share_one_store(store: Store) -> None:
    def work(name: str) -> int:
        proc = store.process(name)
        return proc.read(proc.create(TEXT).fd, read_all=True).total_chars

    with ThreadPoolExecutor(6) as threads:
        assert set(threads.map(work, NAMES)) == {len(TEXT)}


# --- the way in


def test_the_url_of_any_node_reaches_the_whole_cluster(cluster: Cluster) -> None:
    for node in cluster.nodes:
        url = f"redis+cluster://127.0.0.1:1,127.0.0.1:{node.port}/0"
        with fdstore.connect(url) as store:
            for name in NAMES:
                store.process(name)
            assert len(store.trees()) == len(NAMES)


def test_a_cluster_node_given_as_a_single_redis_is_refused_with_the_right_url_form(cluster: Cluster) -> None:
    with pytest.raises(InvalidArgument, match=r"redis\+cluster://"):
        fdstore.connect(f"redis://127.0.0.1:{cluster.nodes[0].port}")


def test_a_single_redis_given_as_a_cluster_is_refused() -> None:
    with PrivateServer(port=True) as server, pytest.raises(InvalidArgument, match="is not a Redis Cluster"):
        fdstore.connect(server.url.replace("redis://", "redis+cluster://"))


def test_an_unreachable_cluster_is_an_immediate_error() -> None:
    with pytest.raises(StoreUnavailable, match="refused"):
        fdstore.connect("redis+cluster://127.0.0.1:1,127.0.0.1:2")


def test_a_cluster_with_one_evicting_node_is_refused(cluster: Cluster) -> None:
    cluster.nodes[2].ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(UnsafeStore, match="allkeys-lru"):
            fdstore.connect(cluster.url)
    finally:
        cluster.nodes[2].ask("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_status_and_doctor_show_that_the_store_is_a_cluster(cluster: Cluster, store: Store) -> None:
    store.process("triage").create("text")

    status = CliRunner().invoke(cli, ["status", "--url", cluster.url])
    doctor = CliRunner().invoke(cli, ["doctor", "--url", cluster.url])

    assert "a Redis Cluster of 3 primaries" in status.stdout
    assert "1 tree" in status.stdout
    assert "answers: a Redis Cluster" in doctor.stdout
    for node in cluster.nodes:
        assert f"eviction at 127.0.0.1:{node.port}: noeviction" in doctor.stdout


def test_all_keys_of_a_tree_are_on_one_node(cluster: Cluster, store: Store, execute: Execute) -> None:
    store.process("triage").create(TEXT)

    own = [set(node.ask("KEYS", "*{triage}*")) for node in cluster.nodes]

    assert sorted(map(bool, own)) == [False, False, True]
    assert execute("ZSCORE", TreeKeys("fdstore", "triage").trees, "triage") is not None


def test_the_deployed_worker_user_has_all_permissions_it_needs(cluster: Cluster) -> None:
    users = users_file(version_of(cluster.nodes[0].ask)).read_text()
    [rules] = [line.split()[2:] for line in users.splitlines() if line.startswith("user worker ")]
    for node in cluster.nodes:
        node.ask("ACL", "SETUSER", "worker", *rules, ">s3cret")
    try:
        with fdstore.connect(cluster.url.replace("//", "//worker:s3cret@")) as store:
            procs = [store.process(name) for name in NAMES]
            for proc in procs:
                assert proc.create(TEXT).fd == "fd:1"
                assert proc.read("fd:1", start=2).page == 2
            pages = f"{proc.handle.keys.record}:fd:1:pages"
            move = Move(cluster, pages)
            move.migrate(pages)
            assert proc.read("fd:1", start=2).page == 2
            move.finish()
            assert "s3cret" not in repr(store)
    finally:
        for node in cluster.nodes:
            node.ask("ACL", "DELUSER", "worker")


@pytest.mark.parametrize(
    ("login", "said"), [("ann:topsecret", "'hget' command"), ("ann:topsecrex", "invalid username-password")]
)
def test_a_refused_user_gets_a_permission_error_without_retries(
    cluster: Cluster, login: str, said: str
) -> None:
    for node in cluster.nodes:
        node.ask("ACL", "SETUSER", "ann", "on", ">topsecret", "~*", "+@all", "-hget")

    def read() -> None:
        with fdstore.connect(cluster.url.replace("://", f"://{login}@")) as store:
            store.process("triage").create("x")
            store.process("triage").read("fd:1")

    try:
        with within(5), pytest.raises(FDStoreError, match=said) as caught:
            read()
    finally:
        for node in cluster.nodes:
            node.ask("ACL", "DELUSER", "ann")

    assert caught.value.type == "permission_error"
    assert "topsecre" not in str(caught.value)


def test_a_full_node_refuses_writes_and_the_others_accept_them(cluster: Cluster, store: Store) -> None:
    procs = {cluster.node_of(f"{{{name}}}").port: store.process(name) for name in NAMES}
    full = cluster.nodes[0]
    full.ask("CONFIG", "SET", "maxmemory", 1)
    try:
        for port, proc in procs.items():
            if port == full.port:
                with pytest.raises(fdstore.errors.StoreFull):
                    proc.create("text")
            else:
                assert proc.create("text").fd == "fd:1"
    finally:
        full.ask("CONFIG", "SET", "maxmemory", 0)


def test_trees_on_all_nodes_obey_the_ceilings(store: Store, execute: Execute) -> None:
    procs = [store.process(name) for name in NAMES]
    for proc in procs:
        proc.create("x" * 100)

    store.run(ceilings.put("fdstore", "tree_fds", "1"))
    for proc in procs:
        with pytest.raises(fdstore.errors.QuotaExceeded, match="tree_fds"):
            proc.create("y")

    store.run(ceilings.put("fdstore", "tree_fds", None))
    store.run(ceilings.put("fdstore", "bytes", str(100 * len(procs))))
    for proc in procs:
        with pytest.raises(fdstore.errors.QuotaExceeded, match="ceiling bytes"):
            proc.create("y")

    execute("HDEL", "fdstore:limits", "bytes")
    for proc in procs:
        proc.handle.ceilings_due_at = 0.0
        proc.create("")
        assert proc.create("y").fd == "fd:3"


def test_the_guard_of_scripts_is_never_stored(cluster: Cluster, store: Store) -> None:
    for name in NAMES:
        store.process(name).create("text")

    assert all(node.ask("KEYS", "*guard*") == [] for node in cluster.nodes)


def test_the_check_after_each_test_reads_the_keys_of_all_nodes(cluster: Cluster, store: Store) -> None:
    for number in range(6):
        store.process(f"tree-{number}").create("a line\n")

    assert sorted(Stored(cluster.execute)("KEYS", "*")) == sorted(cluster.execute("KEYS", "*"))
    assert all(node.ask("DBSIZE") for node in cluster.nodes)
