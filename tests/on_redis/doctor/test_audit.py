"""`fdstore doctor --deep` reports intact stores as intact, names damage, and changes nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import redis
from click.testing import CliRunner

import fdstore
from fdstore.cli import cli
from fdstore.client import Process, Store
from fdstore.errors import DamagedRecord
from fdstore.local.redis_server import PrivateServer
from fdstore.model.records import TreeCounts
from fdstore.store.doctor.audit import COUNTS, Damage, check_tree, named_trees
from fdstore.store.doctor.in_step import in_step
from fdstore.store.keys import TreeKeys
from fdstore.store.processes import leases, processes, python_state
from fdstore.store.record_format import replies_or_damage
from fdstore.store.streams import streams
from fdstore.store.trees import collect_trees
from tests.on_redis.damage import DamagedStore, cases
from tests.round_trips import Tally, count_round_trips, tallied
from tests.servers import values_of
from tests.thorough import sample, thorough
from tests.waiting import meanwhile

HURT = TreeKeys("fdstore", "t")
LINES = "".join(f"line {n}, 漢字\n" for n in range(400))


@pytest.fixture
def proc(store: Store, execute: Any) -> Iterator[Process]:
    yield store.process("t")
    execute("FLUSHALL")  # damaged keys do not match the key table


def find_damage(store: Store, tree: str = "t") -> list[Damage]:
    return store.run(check_tree(TreeKeys("fdstore", tree)))


def fill_process(proc: Process) -> None:
    """Create every kind of content."""
    proc.create(LINES, page_size=7)
    proc.create("")
    proc.close("fd:2")
    proc.extract("fd:1#L3-900")
    with proc.open_stream(page_size=9) as out:
        out.write(LINES)
    proc.store.run(streams.open_stream(proc.handle, "draft", 5, lease_s=None)).put("unsent")
    proc.store.run(python_state.begin(proc.handle, "call", 1))
    proc.store.run(python_state.end(proc.handle, "call", b"variables" * 100_000))
    proc.store.run(python_state.begin(proc.handle, "call 2", 1))
    child = proc.child(["fd:1"])
    child.create("of the child")
    proc.fork()
    agent = processes.create_child(
        proc.handle, None, state="ready", output=processes.ChildStream("said", 100)
    )
    proc.store.run(leases.claim(proc.store.run(agent).keys, "a worker"))


def test_an_intact_store_is_reported_as_intact(store: Store, proc: Process) -> None:
    fill_process(proc)
    read: list[tuple[int, int]] = []

    assert store.run(check_tree(HURT, lambda *done: read.append(done))) == []
    assert sorted(read) == read
    assert read[-1] == (store.tree("t").bytes, store.tree("t").fds)


def audit_cost(store: Store, contents: int, children: int) -> Tally:
    """Return what an audit of a tree costs whose children share one of its contents."""
    proc = store.process(f"c{contents}-{children}")
    for number in range(contents):
        proc.create(f"text {number}\n")
    for _ in range(children):
        proc.child(["fd:1"])
    tally = Tally()
    assert store.run(tallied(check_tree(proc.handle.keys.tree), tally)) == []
    return tally


def test_the_cost_of_an_audit_grows_with_contents_and_with_processes_but_not_with_their_product(
    store: Store, proc: Process
) -> None:
    alone, few, many = (audit_cost(store, *size) for size in ((100, 0), (100, 10), (100, 50)))

    for_each_child = (few.commands - alone.commands) / 10
    assert for_each_child < 10
    assert many.commands - alone.commands < 50 * (for_each_child + 1)
    assert alone.commands < 100 * 12
    assert many.round_trips < 100


def test_what_a_child_left_half_stored_is_found(store: Store, proc: Process, execute: Any) -> None:
    proc.create("of the parent")
    child = proc.child(["fd:1"])
    made = child.create("of the child")
    execute("SREM", f"{R}:contents", f"{child.id}/2")
    execute("HDEL", child.handle.keys.fds, made.fd)

    said = [each.said for each in find_damage(store)]

    assert any("a content that is not in its tree" in each for each in said)


def test_operations_in_step_get_their_own_replies_and_damage(
    store: Store, proc: Process, execute: Any
) -> None:
    execute("SET", "fdstore:{t}:x", "text")

    def read(*keys: str) -> Any:
        replies = []
        for key in keys:
            replies += yield from replies_or_damage([("HLEN", key)])
        return replies

    lengths, round_trips = count_round_trips(
        store, in_step([read(HURT.record), read(HURT.record, "fdstore:{t}:x", HURT.record), read()])
    )

    fields = len(execute("HGETALL", HURT.record)) // 2
    assert lengths[0] == [fields]
    assert (lengths[1][0], type(lengths[1][1]), lengths[1][2]) == (fields, DamagedRecord, fields)
    assert lengths[2] == []
    assert round_trips == 3


def test_a_text_of_many_pages_is_audited_in_bounded_pieces(store: Store, proc: Process) -> None:
    proc.create(LINES * 60)
    requests = []

    def record_requests() -> Any:
        operation = check_tree(HURT)
        replies = None
        with suppress(StopIteration):
            while True:
                requests.append(operation.send(replies))
                replies = yield requests[-1]

    store.run(record_requests())

    assert max(len(batch) for batch in requests) <= 500
    pages = [command for batch in requests for command in batch if command[0] == "HMGET"]
    assert len(pages) > 3
    assert not {command[0] for batch in requests for command in batch} & {"SCAN", "KEYS", "HSCAN", "SSCAN"}


R = "fdstore:{t}"
DAMAGES: dict[str, tuple[list[tuple[Any, ...]], str, str]] = {
    # the damaging commands, the key that is reported (both without the prefix of the tree), and the report
    "page missing": ([("HDEL", ":t:fd:1:pages", 3)], ":t:fd:1", "pages, and its totals say"),
    "page replaced": ([("HSET", ":t:fd:1:pages", 3, "short")], ":t:fd:1", "chars is"),
    "page lengthened": ([("HSET", ":t:fd:1:pages", 3, "x" * 50)], ":t:fd:1:pages", "page 3 has 50 char"),
    "page not UTF-8": ([("HSET", ":t:fd:1:pages", 3, b"\xff")], ":t:fd:1:pages", "not UTF-8"),
    "pages gone": ([("UNLINK", ":t:fd:1:pages")], ":t:fd:1", "it has 0 pages"),
    "pages aside": ([("RENAME", ":t:fd:4:pages", ":t:fd:4:lent")], ":t:fd:4", "still in"),
    "index wrong": ([("HSET", ":t:fd:1:index", 257, "0 0;1,1")], ":t:fd:1:index", "field 257"),
    "short index wrong": ([("HSET", ":t.1:fd:6", "index", "0 0;9,9")], ":t.1:fd:6", "index does not match"),
    "index gone": ([("UNLINK", ":t:fd:1:index")], ":t:fd:1:index", "is missing"),
    "chars wrong": ([("HSET", ":t:fd:1", "chars", 7)], ":t:fd:1", "chars is 7"),
    "lines wrong": ([("HSET", ":t:fd:1", "lines", 7)], ":t:fd:1", "lines is 7"),
    "record hostile": ([("HSET", ":t:fd:1", "pages", "many")], ":t:fd:1", "metadata cannot be read"),
    "record gone": ([("UNLINK", ":t:fd:1")], ":t:fd:1", "it does not exist"),
    "holder missing": ([("SREM", ":t:fd:1:holders", "t")], ":t:fd:1:holders", "not among its holders"),
    "holder extra": ([("SADD", ":t:fd:1:holders", "t.9")], ":t:fd:1:holders", "has no descriptor"),
    "no holders": ([("HDEL", ":t:fds", "fd:3")], ":t:fd:3:holders", "has no descriptor"),
    "entry to nothing": ([("HSET", ":t:fds", "fd:9", "t/9")], ":t:fd:9", "not among the tree's"),
    "entry of nonsense": ([("HSET", ":t:fds", "fd:9", "x")], ":t:fds", "names x"),
    "half-made content": ([("HSET", ":t:fd:2:pages", 1, "x")], ":t:fd:2", "1 keys of a content"),
    "orphaned content": ([("SREM", ":contents", "t/1")], ":t:fd:1", "not among the tree's contents"),
    "bytes counted wrong": ([("HINCRBY", "", "bytes", 5)], "", "bytes is"),
    "fds counted wrong": ([("HINCRBY", "", "fds", 5)], "", "fds is"),
    "processes counted wrong": ([("HINCRBY", "", "processes", 5)], "", "processes is"),
    "live counted wrong": ([("HINCRBY", "", "live", -1)], "", "live is"),
    "process not named": ([("ZREM", ":processes", "t.1")], ":t.1", "not among those of its tree"),
    "process gone": ([("UNLINK", ":t.1")], ":t.1", "it does not exist"),
    "process hostile": ([("HSET", ":t.1", "attempt", "x")], ":t.1", "cannot be read"),
    "child numbers hostile": ([("HSET", ":t", "next_child", 10**12)], ":t", "next_child is"),
    "a session that lacks a piece": (
        [("HSET", ":t:python", "head", '{"session": "a", "session_chunks": "2"}')],
        ":t:python",
        "its field a/0 is missing",
    ),
    "a session hostile": ([("HSET", ":t:python", "head", "x")], ":t:python", "cannot be read"),
    "tree hostile": ([("HSET", "", "bytes", "x")], "", "the tree cannot be read"),
    "tree of another type": ([("DEL", ""), ("SET", "", "x")], "", "cannot be read"),
    "contents of another type": ([("DEL", ":contents"), ("SET", ":contents", "x")], ":contents", ""),
    "a newer format": ([("HSET", "", "format", 99)], "", "format 99"),
}


@pytest.mark.parametrize("name", sample(DAMAGES, 12, "other damages"))
def test_damage_is_reported_with_its_key_and_a_remedy(
    name: str, store: Store, proc: Process, execute: Any
) -> None:
    fill_process(proc)
    store.process("other").create("well")
    commands, key, problem = DAMAGES[name]
    for verb, *keys in commands:
        # every key begins with a colon; the record of the tree is the prefix itself
        execute(verb, *(f"{R}{each}" if each == "" or str(each).startswith(":") else each for each in keys))
    kept = values_of(execute, execute("KEYS", "*"))

    found = find_damage(store)

    assert any(each.key == R + key and problem in each.said and each.advice for each in found), found
    assert not any(each.harmless for each in found)
    assert find_damage(store, "other") == []
    assert values_of(execute, execute("KEYS", "*")) == kept


def test_the_advised_commands_repair_the_counters(store: Store, proc: Process, execute: Any) -> None:
    fill_process(proc)
    counts = {"bytes", "fds", *COUNTS}
    assert counts == {*TreeCounts.__struct_fields__} - {"id", "created_at", "used_at"}
    for name in counts:
        execute("HINCRBY", R, name, 3)

    for each in find_damage(store):
        command = each.advice.removeprefix("fdstore redis-cli ").replace("'", "").split()
        execute(*command)

    assert find_damage(store) == []


def test_harmless_leftovers_of_a_torn_log_are_reported_as_harmless(
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

    [found] = find_damage(store)

    assert found.harmless
    assert "go beyond its totals" in found.said


def test_a_tree_written_during_the_audit_is_not_reported(redis_url: str, store: Store, proc: Process) -> None:
    def write() -> None:
        out.write("line of a stream\n" * 9)
        out.flush()
        made = mine.create(LINES[:400], page_size=20)
        mine.close(made.fd)

    with fdstore.connect(redis_url) as other:
        mine = other.process("t")
        with mine.open_stream(page_size=50) as out, meanwhile(write):
            looks = [find_damage(store) for _ in range(10)]

    assert not [each for found in looks for each in found if not each.harmless]


def test_a_tree_that_does_not_exist_is_not_reported(store: Store, proc: Process) -> None:
    assert find_damage(store, "gone") == []
    assert [tree.tree for tree in store.run(named_trees("fdstore"))] == ["t"]
    store.run(collect_trees.collect_tree(HURT, dry_run=True))


@pytest.mark.parametrize("seed", [0, *thorough("another schedule", 1)])
def test_an_audit_of_hostile_records_ends_and_leaves_other_trees_alone(
    seed: int, redis_server: PrivateServer, redis_url: str
) -> None:
    with redis.Redis.from_url(redis_url) as client, fdstore.connect(redis_url) as store:
        damaged_store = DamagedStore(store, client)
        for case in random.Random(seed).sample(list(cases(client)), 15):
            damaged_store.damage(case)

            found = store.run(check_tree(TreeKeys("fdstore", "hurt")))

            assert all(each.key.startswith("fdstore:{hurt}") for each in found), case.name
            assert find_damage(store, "alpha") == [], case.name
            damaged_store.restore()
        client.flushall()


@pytest.fixture
def doctor(redis_url: str) -> Callable[..., Any]:
    return lambda *more: CliRunner().invoke(cli, ["doctor", "--deep", "--url", redis_url, *more])


def test_the_command_reports_damage_and_exits_with_1(
    store: Store, proc: Process, execute: Any, doctor: Callable[..., Any]
) -> None:
    fill_process(proc)
    well = doctor().stdout
    execute("HSET", f"{R}:t:fd:1", "chars", 7)

    text_report, documents = doctor(), doctor("--json")

    assert "ok       trees: 1 was read" in well
    assert text_report.exit_code == documents.exit_code == 1
    assert f"DAMAGED  {R}:t:fd:1: chars is 7" in text_report.stdout
    assert "DAMAGED  trees: 1 was read" in text_report.stdout
    found = [json.loads(line) for line in documents.stdout.splitlines()]
    assert {"key", "said", "advice", "harmless"} == set(found[-1])
