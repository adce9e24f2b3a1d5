"""A damaged number in a record of a tree makes no script loop and raises no error of Python: each operation
on that tree works or raises a typed error, and other trees do not notice.

Every number is damaged that is stored in a hash or as a score, also inside JSON: one at a time. A normal run
takes a random sample of the cases (seed DAMAGE_SEED); `make chaos` takes all.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, StoreUnavailable, UnknownOutcome
from fdstore.store.contents import contents
from fdstore.store.doctor.audit import check_tree
from fdstore.store.keys import TreeKeys, process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import asks, journal, leases, processes, python_state
from fdstore.store.streams import streams
from fdstore.store.trees.collect_trees import collect_tree
from fdstore.store.trees.export_quota import Allowance
from tests.on_redis.damage import DamagedStore

SAMPLE = int(os.environ.get("DAMAGE_SAMPLE", "15"))
TREE = "fdstore:{hurt}"
NUMBERS = ("9007199254740992", "-1", "1e308", "nan", "", "inf", "99999999999999", "0.5")
SETTINGS = asks.AskSettings(model="any")


@pytest.fixture(scope="module")
def store_with_programs(shared_damaged_store: DamagedStore) -> DamagedStore:
    """A store whose tree `hurt` has the state of a program that runs, asks, calls and exports, too."""
    damaged_store = shared_damaged_store
    damaged_store.restore()
    store, proc = damaged_store.store, damaged_store.store.process("hurt")
    store.run(python_state.begin(proc.handle, "before", 1))
    store.run(python_state.end(proc.handle, "before", b"variables", result="{}"))
    store.run(python_state.begin(proc.handle, "call", 1))
    store.run(python_state.record(proc.handle, "call", {0: b"{}"}))
    store.run(python_state.suspend(proc.handle, "call", b"snapshot"))
    store.run(asks.start(proc.handle, "call", [asks.Ask(number=1, question="?", parts=["text"])], SETTINGS))
    store.run(contents.create(proc.handle, "made once", "text", call_id="made"))
    store.run(streams.open_stream(proc.handle, "opened once", lease_s=60, call_id="opened"))
    store.run(processes.create_child(proc.handle, [], call_id="child"))
    store.run(Allowance(proc.handle, "exported").begin(5))
    damaged_store.keep()
    return damaged_store


def works_of(store: Store) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield operations that run every script of a tree."""
    run = store.run
    keys = process_keys("fdstore", "hurt")
    limits = store.process("omega").handle.limits

    def proc() -> Process:
        return Process(store, ProcessHandle(keys, limits))

    def appended() -> None:
        writer = proc().open_stream(source="x")
        writer.write("text")
        writer.end()

    def lane() -> None:
        for lane in [each.id for each in store.tree("hurt").members if each.kind == "asks"]:
            of = process_keys("fdstore", lane)
            claim = run(leases.claim(of, "here:1"))
            assert isinstance(claim, leases.Claim)
            handle = ProcessHandle(of, claim.limits, claim.attempt)
            answer = asks.Answered(number=1, answer=asks.AskAnswer(text="yes"))
            run(asks.take_next(handle, proc().handle, "call", width=5, running=[], answered=[answer]))

    yield "open", lambda: store.process("hurt")
    yield "tree", lambda: store.tree("hurt")
    yield "read a program", lambda: run(python_state.read(proc().handle, "call"))
    yield "begin a program", lambda: run(python_state.begin(proc().handle, "call", 1))
    yield "record", lambda: run(python_state.record(proc().handle, "call", {1: b"{}"}))
    yield "suspend", lambda: run(python_state.suspend(proc().handle, "call", b"more"))
    yield "end a program", lambda: run(python_state.end(proc().handle, "call", b"more"))
    yield "ask", lambda: run(asks.start(proc().handle, "call", [asks.Ask(number=2, question="?")], SETTINGS))
    yield "answers", lambda: run(asks.answers(proc().handle, "call", [1, 2]))
    yield "lane", lane
    yield "create", lambda: proc().create("text")
    yield "create again", lambda: run(contents.create(proc().handle, "made once", "text", call_id="made"))
    yield "name", lambda: proc().put("name", "text")
    yield "rename", lambda: proc().rename("name", "other")
    yield "page", lambda: proc().read("fd:1", start=2)
    yield "lines", lambda: proc().read("fd:2#L300-560")
    yield "characters", lambda: proc().read("fd:2#C900-1200")
    yield "bytes", lambda: proc().read_bytes("fd:2", 900, 300)
    yield "search", lambda: proc().search("fd:1", "line 8")
    yield "list", lambda: proc().list()
    yield "append", appended
    yield (
        "open a stream again",
        lambda: run(streams.open_stream(proc().handle, "x", lease_s=60, call_id="opened")),
    )
    yield "child", lambda: proc().child(share=["fd:1"])
    yield "child again", lambda: run(processes.create_child(proc().handle, [], call_id="child"))
    yield "fork", lambda: proc().fork()
    yield "close", lambda: proc().close("fd:1")
    yield "export", lambda: run(Allowance(proc().handle, "exported").begin(7))
    yield "journal", lambda: run(journal.add(proc().handle, ["{}"]))
    yield "claim", lambda: run(leases.claim(process_keys("fdstore", "hurt.2"), "here:1"))
    yield "lapse", lambda: run(leases.check_overdue(process_keys("fdstore", "hurt.3")))
    yield "doctor", lambda: list(run(check_tree(TreeKeys("fdstore", "hurt"))))
    yield "run", lambda: Toolset(proc(), enabled=["run_python"]).call("run_python", {"code": "1"}, "call")
    yield "cancel", lambda: run(processes.cancel("fdstore", "hurt.4"))
    yield "end", lambda: proc().end()
    yield "collect", lambda: run(collect_tree(TreeKeys("fdstore", "hurt")))
    yield "drop", lambda: store.drop_tree("hurt", kill=True)


def is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def damages(client: redis.Redis) -> list[tuple[str, tuple[Any, ...]]]:
    """Return a command for each number of the tree and each value in its place, with a name of the number."""
    found: list[tuple[str, tuple[Any, ...]]] = []
    for key in sorted(client.keys(TREE + "*")):
        kind = client.type(key)
        shown = key.decode().removeprefix(TREE)
        if shown.endswith(":pages"):  # of texts
            continue
        if kind == b"hash":
            for field, value in client.hgetall(key).items():
                name = f"{shown} {field.decode()}"
                for replaced in _replaced(value):
                    found.append((name, ("HSET", key, field, replaced)))
        elif kind == b"zset":
            for member, _ in client.zrange(key, 0, 1, withscores=True):
                for score in ("9007199254740992", "-1", "1e308", "inf"):
                    found.append((f"{shown} score", ("ZADD", key, score, member)))
        elif kind == b"list":
            for replaced in _replaced(client.lindex(key, 0)):
                found.append((f"{shown} 0", ("LSET", key, 0, replaced)))
    return found


def _replaced(value: bytes) -> list[str]:
    """Return the value with each of its numbers replaced by each of the damaged ones."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return []
    if text[:1] in ("{", "["):
        return [json.dumps(each).replace('"<inf>"', "1e308") for each in _in_json(json.loads(text))]
    parts = text.split(" ")
    return [
        " ".join([*parts[:at], number, *parts[at + 1 :]])
        for at, part in enumerate(parts[:4])
        if is_number(part)
        for number in NUMBERS
    ]


def _in_json(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from ({**value, name: each} for each in _in_json(part))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from ([*value[:at], each, *value[at + 1 :]] for each in _in_json(part))
    elif isinstance(value, str) and is_number(value):
        yield from NUMBERS
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from (2**53, -1, "<inf>", "nan", "", None, 10**30, {})


def check(damaged_store: DamagedStore, damage: tuple[Any, ...]) -> None:
    """Run every operation on the damaged tree, each on what the ones before left."""
    store, client = damaged_store.store, damaged_store.client
    damaged_store.restore()
    client.execute_command(*damage)
    for what, work in works_of(store):
        try:
            work()
        except (StoreUnavailable, UnknownOutcome) as error:
            raise AssertionError(f"{what} kept Redis busy, or ended its connection") from error
        except FDStoreError:
            pass
        except Exception as error:
            raise AssertionError(f"{what} raised {error!r}") from error
    assert store.process("omega").read("fd:1", start=2).text
    assert store.process("alpha").create("text").fd


def run_cases(damaged_store: DamagedStore, some: list[tuple[str, tuple[Any, ...]]]) -> None:
    failed = []
    for name, command in some:
        try:
            check(damaged_store, command)
        except AssertionError as error:
            failed.append(f"{name} = {command[-1]!r:.200}: {error}")
            print(failed[-1], flush=True)
    assert not failed, "\n".join(failed)


def test_some_damaged_numbers_are_typed_errors_of_their_tree(store_with_programs: DamagedStore) -> None:
    every = damages(store_with_programs.client)
    seed = os.environ.get("DAMAGE_SEED", "1")
    print(f"DAMAGE_SEED={seed}: {SAMPLE} of {len(every)} cases")
    run_cases(store_with_programs, random.Random(seed).sample(every, SAMPLE))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_damaged_number_is_a_typed_error_of_its_tree(store_with_programs: DamagedStore) -> None:
    run_cases(store_with_programs, damages(store_with_programs.client))
