"""`fdstore doctor --deep`: what is well is called well, what is damaged is named, and nothing is changed."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import redis
from click.testing import CliRunner

import fdstore
from fdstore.cli import cli
from fdstore.client import Process, Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store import collect, leases, processes, streams
from fdstore.store.audit import Damage, check_tree, named_trees
from fdstore.store.keys import TreeKeys
from tests.on_redis.damage import Town, cases

HURT = TreeKeys("fdstore", "t")
LINES = "".join(f"line {n}, 漢字\n" for n in range(3000))


@pytest.fixture
def proc(store: Store, execute: Any) -> Iterator[Process]:
    yield store.process("t")
    execute("FLUSHALL")  # what is damaged is not what the key table accounts for


def damage_of(store: Store, tree: str = "t") -> list[Damage]:
    return store.run(check_tree(TreeKeys("fdstore", tree)))


def busy(proc: Process) -> None:
    """A bit of everything."""
    proc.create(LINES, page_size=7)
    proc.create("")
    proc.close("fd:2")
    proc.extract("fd:1#L3-900")
    with proc.open_stream(page_size=9) as out:
        out.write(LINES)
    proc.store.run(streams.open_stream(proc.handle, "draft", 5, lease_s=None)).put("unsent")
    child = proc.child(["fd:1"])
    child.create("of the child")
    proc.fork()
    agent = processes.create_child(proc.handle, None, state="ready", output=processes.Output("said", 100))
    proc.store.run(leases.claim(proc.store.run(agent).keys, "a worker"))


def test_what_is_well_is_called_well(store: Store, proc: Process) -> None:
    busy(proc)
    read: list[int] = []

    assert store.run(check_tree(HURT, read.append)) == []
    assert sorted(read) == read
    assert read[-1] == store.tree("t").bytes


def test_a_text_of_many_pages_is_read_a_bounded_piece_at_a_time(store: Store, proc: Process) -> None:
    proc.create(LINES * 20)
    asked = []

    def noted() -> Any:
        operation = check_tree(HURT)
        replies = None
        with suppress(StopIteration):
            while True:
                asked.append(operation.send(replies))
                replies = yield asked[-1]

    store.run(noted())

    assert max(len(batch) for batch in asked) <= 500
    pages = [command for batch in asked for command in batch if command[0] == "HMGET"]
    assert len(pages) > 3
    assert not {command[0] for batch in asked for command in batch} & {"SCAN", "KEYS", "HSCAN", "SSCAN"}


R = "fdstore:{t}"
DAMAGES: dict[str, tuple[list[tuple[Any, ...]], str, str]] = {
    # what is done: the key that is named, and what is said of it
    "page missing": ([("HDEL", f"{R}:t:fd:1:pages", 3)], f"{R}:t:fd:1", "pages, and its totals say"),
    "page replaced": ([("HSET", f"{R}:t:fd:1:pages", 3, "short")], f"{R}:t:fd:1", "chars is"),
    "page lengthened": (
        [("HSET", f"{R}:t:fd:1:pages", 3, "x" * 50)],
        f"{R}:t:fd:1:pages",
        "page 3 has 50 characters",
    ),
    "page not UTF-8": ([("HSET", f"{R}:t:fd:1:pages", 3, b"\xff")], f"{R}:t:fd:1:pages", "not UTF-8"),
    "pages gone": ([("UNLINK", f"{R}:t:fd:1:pages")], f"{R}:t:fd:1", "it has 0 pages"),
    "pages aside": (
        [("RENAME", f"{R}:t:fd:4:pages", f"{R}:t:fd:4:lent")],
        f"{R}:t:fd:4",
        "still in",
    ),
    "index wrong": ([("HSET", f"{R}:t:fd:1:index", 257, "0 0;1,1")], f"{R}:t:fd:1:index", "field 257"),
    "index gone": ([("UNLINK", f"{R}:t:fd:1:index")], f"{R}:t:fd:1:index", "is missing"),
    "chars wrong": ([("HSET", f"{R}:t:fd:1", "chars", 7)], f"{R}:t:fd:1", "chars is 7"),
    "lines wrong": ([("HSET", f"{R}:t:fd:1", "lines", 7)], f"{R}:t:fd:1", "lines is 7"),
    "record hostile": ([("HSET", f"{R}:t:fd:1", "pages", "many")], f"{R}:t:fd:1", "metadata cannot be read"),
    "record gone": ([("UNLINK", f"{R}:t:fd:1")], f"{R}:t:fd:1", "it does not exist"),
    "holder missing": (
        [("SREM", f"{R}:t:fd:1:holders", "t")],
        f"{R}:t:fd:1:holders",
        "not among its holders",
    ),
    "holder extra": ([("SADD", f"{R}:t:fd:1:holders", "t.9")], f"{R}:t:fd:1:holders", "has no descriptor"),
    "no holders": ([("HDEL", f"{R}:t:fds", "fd:3")], f"{R}:t:fd:3:holders", "has no descriptor"),
    "entry to nothing": ([("HSET", f"{R}:t:fds", "fd:9", "t/9")], f"{R}:t:fd:9", "not among the tree's"),
    "entry of nonsense": ([("HSET", f"{R}:t:fds", "fd:9", "x")], f"{R}:t:fds", "names x"),
    "half-made content": ([("HSET", f"{R}:t:fd:2:pages", 1, "x")], f"{R}:t:fd:2", "1 keys of a content"),
    "orphaned content": ([("SREM", f"{R}:contents", "t/1")], f"{R}:t:fd:1", "not among the tree's contents"),
    "bytes counted wrong": ([("HINCRBY", R, "bytes", 5)], R, "bytes is"),
    "fds counted wrong": ([("HINCRBY", R, "fds", 5)], R, "fds is"),
    "processes counted wrong": ([("HINCRBY", R, "processes", 5)], R, "processes is"),
    "live counted wrong": ([("HINCRBY", R, "live", -1)], R, "live is"),
    "process not named": ([("ZREM", f"{R}:processes", "t.1")], f"{R}:t.1", "not among those of its tree"),
    "process gone": ([("UNLINK", f"{R}:t.1")], f"{R}:t.1", "it does not exist"),
    "process hostile": ([("HSET", f"{R}:t.1", "attempt", "x")], f"{R}:t.1", "cannot be read"),
    "child numbers hostile": ([("HSET", f"{R}:t", "next_child", 10**12)], f"{R}:t", "next_child is"),
    "tree hostile": ([("HSET", R, "bytes", "x")], R, "the tree cannot be read"),
    "tree of another type": ([("DEL", R), ("SET", R, "x")], R, "cannot be read"),
    "contents of another type": (
        [("DEL", f"{R}:contents"), ("SET", f"{R}:contents", "x")],
        f"{R}:contents",
        "",
    ),
    "a newer format": ([("HSET", R, "format", 99)], R, "format 99"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_damaged_is_named_with_what_to_do(
    name: str, store: Store, proc: Process, execute: Any
) -> None:
    busy(proc)
    store.process("other").create("well")
    commands, key, said = DAMAGES[name]
    for command in commands:
        execute(*command)
    kept = stored(execute)

    found = damage_of(store)

    assert any(each.key == key and said in each.said and each.advice for each in found), found
    assert not any(each.harmless for each in found)
    assert damage_of(store, "other") == []
    assert stored(execute) == kept


def stored(execute: Any) -> dict[bytes, bytes]:
    return {key: execute("DUMP", key) for key in execute("KEYS", "*")}


def test_the_advice_about_counters_puts_them_right(store: Store, proc: Process, execute: Any) -> None:
    busy(proc)
    for name in ("bytes", "fds", "processes", "live"):
        execute("HINCRBY", R, name, 3)

    for each in damage_of(store):
        command = each.advice.removeprefix("fdstore redis-cli ").replace("'", "").split()
        execute(*command)

    assert damage_of(store) == []


def test_what_a_torn_log_left_and_readers_pass_by_is_only_noted(
    store: Store, proc: Process, execute: Any
) -> None:
    appender = store.run(streams.open_stream(proc.handle, "stream", 10, lease_s=None))
    appender.put("so\nfar")
    store.run(appender.store())
    totals = execute("DUMP", f"{R}:t:fd:1")
    tree = execute("DUMP", R)
    appender.put(" and more\nof it" * 5)
    store.run(appender.store())
    execute("RESTORE", f"{R}:t:fd:1", 0, totals, "REPLACE")
    execute("RESTORE", R, 0, tree, "REPLACE")

    [found] = damage_of(store)

    assert found.harmless
    assert "go beyond its totals" in found.said


def test_a_tree_that_others_write_is_not_called_damaged(redis_url: str, store: Store, proc: Process) -> None:
    stop = threading.Event()

    def write() -> None:
        with fdstore.connect(redis_url) as other:
            mine = other.process("t")
            with mine.open_stream(page_size=50) as out:
                while not stop.is_set():
                    out.write("line of a stream\n" * 9)
                    out.flush()
                    made = mine.create(LINES[:400], page_size=20)
                    mine.close(made.fd)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        looks = [damage_of(store) for _ in range(10)]
    finally:
        stop.set()
        thread.join(30)

    assert not [each for found in looks for each in found if not each.harmless]


def test_a_tree_that_is_gone_is_not_damaged(store: Store, proc: Process) -> None:
    assert damage_of(store, "gone") == []
    assert [tree.tree for tree in store.run(named_trees("fdstore"))] == ["t"]
    store.run(collect.collect_tree(HURT, dry_run=True))


@pytest.mark.parametrize("seed", range(2))
def test_a_look_at_hostile_records_ends_and_leaves_other_trees_alone(
    seed: int, redis_server: PrivateServer, redis_url: str
) -> None:
    with redis.Redis.from_url(redis_url) as client, fdstore.connect(redis_url) as store:
        town = Town(store, client)
        for case in random.Random(seed).sample(list(cases(client)), 15):
            town.damage(case)

            found = store.run(check_tree(TreeKeys("fdstore", "hurt")))

            assert all(each.key.startswith("fdstore:{hurt}") for each in found), case.name
            assert damage_of(store, "alpha") == [], case.name
            town.restore()
        client.flushall()


@pytest.fixture
def doctor(redis_url: str) -> Callable[..., Any]:
    return lambda *more: CliRunner().invoke(cli, ["doctor", "--deep", "--url", redis_url, *more])


def test_the_command_says_what_is_damaged_and_ends_with_one(
    store: Store, proc: Process, execute: Any, doctor: Callable[..., Any]
) -> None:
    busy(proc)
    well = doctor().stdout
    execute("HSET", f"{R}:t:fd:1", "chars", 7)

    told, documents = doctor(), doctor("--json")

    assert "ok       trees: 1 was read" in well
    assert told.exit_code == documents.exit_code == 1
    assert f"DAMAGED  {R}:t:fd:1: chars is 7" in told.stdout
    assert "DAMAGED  trees: 1 was read" in told.stdout
    found = [json.loads(line) for line in documents.stdout.splitlines()]
    assert {"key", "said", "advice", "harmless"} == set(found[-1])
