"""Damaged records of one tree are named, and hide and limit nothing of the others."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec
import pytest
import redis
from click.testing import Result

from fdstore.agents.loop.history import read_history
from fdstore.client import Store
from fdstore.errors import DamagedRecord
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases, pipelines, process_records
from fdstore.store.trees import ceilings
from fdstore.tools.process_task import ForkTask, encode_task

Command = Callable[..., Result]


# --- what people look at


def test_ps_shows_all_readable_processes_and_names_the_unreadable_ones(
    command: Command, client: redis.Redis
) -> None:
    client.hset("fdstore:{hurt}:hurt.2", "started_at", "never")

    shown = command("ps")

    assert shown.exit_code == 0
    assert {"alpha.2", "omega.2", "hurt.3"} <= {word for word in shown.output.split() if "." in word}
    problem = "the record of process hurt.2 cannot be read: started_at is 'never'"
    assert shown.stderr == f"fdstore: {problem}\n"


def test_ps_with_json_lists_unreadable_processes_last(command: Command, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}", "limits", "{")

    *shown, last = command("ps", "--json").stdout.splitlines()

    assert {msgspec.json.decode(line)["id"].partition(".")[0] for line in shown} == {"alpha", "omega"}
    [unreadable] = msgspec.json.decode(last)["unreadable"]
    assert unreadable["what"] == "the limits of tree hurt"


def test_status_counts_the_intact_trees(command: Command, client: redis.Redis) -> None:
    client.delete("fdstore:{hurt}")
    client.set("fdstore:{hurt}", "x")

    shown = command("status")

    assert shown.exit_code == 0
    assert "2 trees" in shown.stdout
    assert "fdstore: the key fdstore:{hurt} cannot be read: WRONGTYPE" in shown.stderr
    [unreadable] = msgspec.json.decode(command("status", "--json").stdout)["store"]["unreadable"]
    assert unreadable["what"] == "the key fdstore:{hurt}"


def test_ls_shows_the_intact_descriptors(command: Command, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}:hurt:fd:1", "chars", "many")
    client.hset("fdstore:{hurt}:hurt:fds", "fd:2", "nothing")

    shown = command("ls", "hurt")

    assert shown.exit_code == 0
    assert {"fd:3", "ref:plan"} <= set(shown.stdout.split())
    assert len(shown.stderr.splitlines()) == 2
    assert "fd:2 of process hurt cannot be read: nothing is not a content of its tree" in shown.stderr


def test_a_huge_page_count_ends_a_cat_immediately(command: Command, client: redis.Redis) -> None:
    """Regression test: a list of all page numbers was built before the first request."""
    client.hset("fdstore:{hurt}:hurt:fd:1", "pages", 10**12)

    shown = command("cat", "hurt", "fd:1")

    assert (shown.exit_code, shown.stdout) == (1, "")
    assert shown.stderr.startswith("fdstore: store_lost_data: fd:1 of process hurt cannot be read")


@pytest.mark.thorough("a bound of time")
def test_consistent_totals_that_disagree_with_the_pages_end_a_cat_immediately(
    command: Command, client: redis.Redis
) -> None:
    sizes = {"pages": 10**12, "bytes": 10**13, "chars": 10**13}
    client.hset("fdstore:{hurt}:hurt:fd:1", mapping=sizes)

    shown = command("cat", "hurt", "fd:1")

    assert shown.exit_code == 1
    assert is_typed_error(shown.stderr)


def test_following_a_content_shorter_than_its_totals_is_an_error(store: Store, client: redis.Redis) -> None:
    """Regression test: the rest was requested forever, without a pause."""
    length = len(store.process("hurt").read("fd:1", read_all=True).text.encode())
    client.hset("fdstore:{hurt}:hurt:fd:1", mapping={"chars": length + 1, "bytes": length + 1})

    with pytest.raises(DamagedRecord, match="fd:1 of process hurt"):
        list(store.process("hurt").follow("fd:1"))


def test_pipelines_that_read_each_other_have_no_chain(store: Store, client: redis.Redis) -> None:
    hurt = store.process("hurt")
    table = "fdstore:{hurt}:hurt.1:fds"
    client.hset(table, "fd:1", "hurt.1/7")

    with pytest.raises(DamagedRecord):
        store.run(pipelines.chain_of(store.process("hurt.1").handle, "fd:1"))
    assert hurt.id == "hurt"


def is_typed_error(stderr: str) -> bool:
    return stderr.startswith(("fdstore: store_lost_data: ", "fdstore: not_found: "))


# --- agents


def test_an_agent_recorded_as_a_fork_of_itself_fails_with_the_reason(
    store: Store, client: redis.Redis
) -> None:
    fork = ForkTask(of="hurt.6", records=1, call="c", prompt="p", copy=1, copies=1)
    client.lset("fdstore:{hurt}:hurt.6:journal", 0, encode_task(fork))
    keys = store.process("hurt.6").handle.keys

    with pytest.raises(DamagedRecord, match="copy of itself"):
        store.run(read_history(keys, client.lrange("fdstore:{hurt}:hurt.6:journal", 0, -1)))


def test_errors_about_damaged_records_name_the_key(store: Store, client: redis.Redis) -> None:
    client.delete("fdstore:{hurt}:hurt.2")
    client.set("fdstore:{hurt}:hurt.2", "x")

    with pytest.raises(DamagedRecord, match=r"the key fdstore:\{hurt\}:hurt.2 cannot be read: WRONGTYPE"):
        store.run(process_records.record("fdstore", "hurt.2"))
    with pytest.raises(DamagedRecord, match=r"a record of tree hurt cannot be read: WRONGTYPE .* \(claim\)"):
        store.run(leases.claim(process_keys("fdstore", "hurt.2"), "w"))


def test_the_library_logs_skipped_records(
    store: Store, client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    client.hset("fdstore:{hurt}:hurt.2", "state", "asleep")

    with caplog.at_level(logging.WARNING, "fdstore"):
        found = {process.id for process in store.processes()}

    assert "hurt.2" not in found
    assert "hurt.3" in found
    assert "the record of process hurt.2 cannot be read" in caplog.text
    assert [each.what for each in store.tree("hurt").unreadable] == ["the record of process hurt.2"]


# --- the operator's ceilings, which look at all trees


@pytest.mark.parametrize("value", ["many", "nan", b"\xff"])
def test_a_ceiling_for_all_trees_ignores_the_damaged_tree(
    store: Store, client: redis.Redis, value: str | bytes
) -> None:
    client.hset("fdstore:{hurt}", "bytes", value)
    client.zadd("fdstore:trees", {b"\xff": 5})

    store.run(ceilings.put("fdstore", "bytes", "1GB"))
    made = store.process("alpha").create("text")

    trees, size_bytes = store.run(ceilings.stored_bytes("fdstore"))
    assert (trees, made.chars) == (3, 4)
    assert size_bytes == sum(store.tree(tree).bytes for tree in ("alpha", "omega"))


def test_intact_trees_obey_a_ceiling_beside_a_damaged_one(store: Store, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}", "limits", "{")

    store.run(ceilings.put("fdstore", "tree_live", "5"))

    assert {store.tree(tree).limits.tree_live for tree in ("alpha", "omega")} == {5}
    assert client.hget("fdstore:{hurt}", "limits") == b"{"


def test_lowering_limits_keeps_limits_of_newer_versions(store: Store, client: redis.Redis) -> None:
    limits = msgspec.json.decode(client.hget("fdstore:{hurt}", "limits") or b"") | {"tree_tokens": 7}
    client.hset("fdstore:{hurt}", "limits", msgspec.json.encode(limits))

    changed = store.run(ceilings.put("fdstore", "tree_live", "5"))

    held = msgspec.json.decode(client.hget("fdstore:{hurt}", "limits") or b"")
    assert (changed, held["tree_live"], held["tree_tokens"]) == (3, 5, 7)
