"""Trees unused for their retention are removed completely, and no others."""

from __future__ import annotations

import time
from typing import Any

import pytest

import fdstore
from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, NotFound
from fdstore.model.records import TreeLimits
from fdstore.store.keys import TreeKeys
from fdstore.store.processes import processes
from fdstore.store.trees import collect_trees
from fdstore.text.quantities import DAY_S
from fdstore.wire.script_constants import REOPENED_FROM
from tests.round_trips import killed_after, one_request
from tests.stored_keys import lasting_keys
from tests.waiting import wait_until

DAY = TreeLimits(retention_days=1)


def age_trees(execute: Any, *trees: str, seconds: float = 100_000) -> None:
    """Set the last use of the trees to `seconds` ago."""
    for tree in trees:
        then = time.time() - seconds
        execute("HSET", f"fdstore:{{{tree}}}", "used_at", f"{then:.3f}")
        execute("ZADD", "fdstore:trees", f"{then + 86_400:.3f}", tree)


def collect_tree_now(store: Store, tree: str, *, dry_run: bool = False) -> collect_trees.Collected:
    return store.run(collect_trees.collect_tree(TreeKeys("fdstore", tree), dry_run=dry_run))


def leftovers(execute: Any, tree: str) -> list[bytes]:
    return lasting_keys(execute, f"fdstore:{{{tree}}}*")


def resume_operation(operation: Any, replies: list[Any]) -> Any:
    """Run the rest of an operation, beginning with these replies."""
    try:
        while True:
            replies = yield operation.send(replies)
    except StopIteration as done:
        return done.value


def create_filled_tree(store: Store, name: str, limits: TreeLimits = DAY) -> Process:
    proc = store.process(name, limits=limits)
    proc.create("text\n" * 1000)
    child = proc.child(share=["fd:1"])
    child.create("more")
    proc.fork().end()
    return proc


def test_a_tree_past_its_retention_is_removed_with_every_key(store: Store, execute: Any) -> None:
    create_filled_tree(store, "old")
    create_filled_tree(store, "kept")
    age_trees(execute, "old")

    assert collect_tree_now(store, "old").outcome == "gone"

    assert leftovers(execute, "old") == []
    assert [tree.id for tree in store.trees()] == ["kept"]
    assert execute("ZRANGE", "fdstore:trees", 0, -1) == [b"kept"]


def test_a_dry_run_lists_due_trees_and_changes_nothing(store: Store, execute: Any) -> None:
    proc = create_filled_tree(store, "old")
    age_trees(execute, "old")
    before = store.tree("old")

    found = collect_tree_now(store, "old", dry_run=True)

    assert (found.outcome, found.detail) == ("due", "2 contents, 5004 bytes")
    assert store.tree("old") == before
    assert proc.read("fd:1", read_all=True).text == "text\n" * 1000


def test_a_tree_within_its_retention_is_kept(store: Store) -> None:
    proc = create_filled_tree(store, "young", TreeLimits(retention_days=7))

    found = collect_tree_now(store, "young")

    assert found.outcome == "kept"
    assert float(found.detail) == pytest.approx(time.time() + 7 * 86_400, abs=60)
    assert proc.read("fd:1").lines == "1-800"


def test_retention_0_keeps_a_tree_forever(store: Store, execute: Any) -> None:
    create_filled_tree(store, "for-ever", TreeLimits(retention_days=0))

    assert collect_tree_now(store, "for-ever").outcome == "kept"
    assert execute("ZSCORE", "fdstore:trees", "for-ever") == b"inf"
    assert list(store.run(collect_trees.due_trees("fdstore", time.time() + 1e9))) == []


@pytest.mark.parametrize("state", ["ready", "running", "waiting"])
def test_a_tree_with_unfinished_agents_is_not_collected(store: Store, execute: Any, state: str) -> None:
    proc = create_filled_tree(store, "busy")
    child = store.run(processes.create_child(proc.handle, ["fd:1"], state="ready"))
    age_trees(execute, "busy")
    execute("HSET", child.keys.record, "state", state)

    found = collect_tree_now(store, "busy")

    assert (found.outcome, found.detail) == ("held", child.id)
    assert proc.read("fd:1").pages == 2
    assert float(execute("ZSCORE", "fdstore:trees", "busy")) > time.time()


def test_a_tree_with_more_contents_than_one_step_removes_is_removed_whole(store: Store, execute: Any) -> None:
    proc = store.process("many", limits=DAY)
    for n in range(2 * collect_trees.PIECE + 7):
        proc.create(str(n))
    age_trees(execute, "many")

    assert collect_tree_now(store, "many").outcome == "gone"

    assert leftovers(execute, "many") == []


def test_recreating_a_tree_finishes_its_interrupted_collection(store: Store, execute: Any) -> None:
    proc = store.process("many", limits=DAY)
    for n in range(collect_trees.PIECE + 7):
        proc.create(str(n))
    age_trees(execute, "many")
    killed_after(store, collect_trees.collect_tree(TreeKeys("fdstore", "many")), 1)
    assert leftovers(execute, "many") != []

    recreated = store.process("many")

    assert recreated.list() == []
    assert recreated.create("first").fd == "fd:508"
    assert sorted(leftovers(execute, "many")) == sorted(
        f"fdstore:{{many}}{rest}".encode()
        for rest in (
            *("", ":processes", ":contents", ":search:words", ":many", ":many:fds"),
            *(":many:fd:508", ":many:fd:508:pages"),
        )
    )


def test_a_name_used_again_is_a_new_tree(store: Store, execute: Any) -> None:
    create_filled_tree(store, "again")
    age_trees(execute, "again")
    collect_tree_now(store, "again")

    proc = store.process("again")

    assert proc.list() == []
    assert proc.create("new").fd == "fd:2"
    assert store.tree("again").limits == TreeLimits()
    assert store.tree("again").processes == 1


MOMENT = TreeLimits(retention_days=0.3 / 86_400)


def test_a_handle_to_a_collected_tree_never_reads_the_next_tree_of_that_name(store: Store) -> None:
    holder = store.process("again", limits=MOMENT)
    holder.create("old\n" * 5000)
    tools = Toolset(holder)
    assert (holder.read("fd:1").pages, holder.read("fd:1#L4000").text) == (5, "old\n")
    assert 'pages="5"' in tools.call("read_fd", {"fd": "fd:1"}).content
    wait_until(lambda: collect_tree_now(store, "again").outcome == "gone")

    store.process("again", limits=MOMENT).create("new\n" * 2000)

    assert 'type="not_found"' in tools.call("read_fd", {"fd": "fd:1"}).content
    for selector in ("fd:1", "fd:1#L1999", "fd:1#C5", "fd:1#P1-2"):
        with pytest.raises(NotFound, match="its tree was removed at"):
            holder.read(selector)
    assert store.process("again").read("fd:2").text == "new\n" * 1000


def test_a_toolset_that_only_reads_records_the_use_of_its_tree(store: Store, execute: Any) -> None:
    proc = store.process("t", limits=MOMENT)
    proc.create("x")
    tools = Toolset(proc)
    used_at = store.tree("t").used_at

    def read() -> bool:
        assert not tools.call("read_fd", {"fd": "fd:1"}).is_error
        return store.tree("t").used_at > used_at

    wait_until(read)


def test_using_a_handle_to_a_collected_process_raises_not_found(store: Store, execute: Any) -> None:
    proc = create_filled_tree(store, "old")
    age_trees(execute, "old")
    proc.handle._noted_at = 0  # due again, as after a long time
    collect_tree_now(store, "old")

    for use in (lambda: proc.create("x"), lambda: proc.read("fd:1"), proc.fork, proc.end):
        with pytest.raises(NotFound):
            use()


def test_an_entry_without_a_tree_is_dropped(store: Store, execute: Any) -> None:
    execute("ZADD", "fdstore:trees", 1, "crashed")

    assert store.trees() == []
    assert collect_tree_now(store, "crashed").outcome == "gone"

    assert execute("EXISTS", "fdstore:trees") == 0


def test_creating_a_tree_collects_a_few_due_trees(store: Store, execute: Any) -> None:
    for n in range(5):
        store.process(f"old-{n}", limits=DAY).create("x")
    age_trees(execute, *(f"old-{n}" for n in range(5)))

    for n in range(3):
        store.process(f"new-{n}")

    assert {tree.id for tree in store.trees()} == {"new-0", "new-1", "new-2"}


def test_writing_to_a_tree_keeps_it(store: Store, execute: Any) -> None:
    proc = store.process("t", limits=TreeLimits(retention_days=1))
    age_trees(execute, "t")

    proc.create("x")

    assert collect_tree_now(store, "t").outcome == "kept"


@pytest.mark.parametrize("name", ["t", "t.1"])
def test_reads_by_short_lived_clients_keep_a_tree(store: Store, execute: Any, name: str) -> None:
    proc = store.process("t", limits=TreeLimits(retention_days=1))
    proc.create("x")
    proc.fork()
    age_trees(execute, "t", seconds=86_000)

    store.process(name).read("fd:1")

    assert store.tree("t").used_at == pytest.approx(time.time(), abs=10)
    assert collect_tree_now(store, "t").outcome == "kept"


def test_readers_rarely_write(store: Store, execute: Any) -> None:
    proc = store.process("t", limits=TreeLimits(retention_days=1))
    proc.create("x")
    used_at = store.tree("t").used_at

    for _ in range(20):
        store.process("t").read("fd:1")
        proc.read("fd:1", mode="line")

    assert store.tree("t").used_at == used_at


def test_trees_are_collected_in_a_full_redis(store: Store, execute: Any, fill_redis: Any) -> None:
    create_filled_tree(store, "a-used-one")
    create_filled_tree(store, "old")
    age_trees(execute, "a-used-one", "old")
    store.process("a-used-one").create("x")
    execute("ZADD", "fdstore:trees", 1, "a-used-one")
    fill_redis()

    due = [keys.tree for keys in store.run(collect_trees.due_trees("fdstore", time.time()))]
    outcomes = {tree: collect_tree_now(store, tree).outcome for tree in due}

    assert outcomes == {"a-used-one": "kept", "old": "gone"}


def test_a_tree_recreated_during_its_collection_always_has_an_entry(store: Store, execute: Any) -> None:
    create_filled_tree(store, "t")
    age_trees(execute, "t")
    collector = collect_trees.collect_tree(TreeKeys("fdstore", "t"))
    command = next(collector)
    [reply] = store.run(one_request(command))

    store.process("t").create("new")  # between the collector's two steps
    store.run(resume_operation(collector, [reply]))

    assert execute("ZSCORE", "fdstore:trees", "t") is not None
    assert [tree.id for tree in store.trees()] == ["t"]


@pytest.mark.parametrize("removal", ["collected", "dropped"])
def test_an_id_of_a_removed_tree_never_means_a_text_of_a_later_tree_of_its_name(
    store: Store, redis_url: str, execute: Any, removal: str
) -> None:
    create_filled_tree(store, "chat-7")
    age_trees(execute, "chat-7")
    if removal == "collected":
        assert collect_tree_now(store, "chat-7").outcome == "gone"
    else:
        store.drop_tree("chat-7")

    with fdstore.connect(redis_url) as later:  # has seen nothing of the first tree
        proc = later.process("chat-7")
        made = proc.create("of the second tree")
        child = proc.child()

        assert (made.fd, child.id) == ("fd:2", "chat-7.3")
        for reader in (proc, child):
            with pytest.raises(NotFound, match=r"fd:1 no longer exists: its tree was removed at 2") as raised:
                reader.read("fd:1")
            assert raised.value.removed_at is not None
        with pytest.raises(NotFound, match=r"^fd:9 does not exist"):
            proc.read("fd:9")


def test_numbers_go_on_through_any_number_of_removals(store: Store) -> None:
    made = []
    for _ in range(3):
        made.append(store.process("chat-7").create("text").fd)
        store.drop_tree("chat-7")

    assert made == ["fd:1", "fd:2", "fd:3"]


def generated_tree(store: Store, execute: Any) -> str:
    """Make a tree with a generated name, remove it, and let the memory of its numbers expire."""
    name = store.process().id
    store.process(name).create("of the first tree")
    store.process(name).child()
    store.drop_tree(name)
    key = f"fdstore:{{{name}}}:earlier:numbers"
    assert 0 < execute("TTL", key) <= DAY_S
    execute("UNLINK", key)
    return name


def test_a_generated_name_is_remembered_for_a_day(store: Store, execute: Any) -> None:
    for _ in range(3):
        generated_tree(store, execute)

    assert not execute("KEYS", "*:earlier:numbers")


def test_an_id_of_a_generated_tree_never_means_a_text_of_a_later_one(store: Store, execute: Any) -> None:
    name = generated_tree(store, execute)

    proc = store.process(name)
    made, child = proc.create("of the second tree"), proc.child()

    assert made.fd == f"fd:{REOPENED_FROM + 1}"
    assert child.id == f"{name}.{REOPENED_FROM + 1}"
    with pytest.raises(NotFound):
        proc.read("fd:1")
    with pytest.raises(NotFound):
        store.process(f"{name}.1")
    store.drop_tree(name)
    assert execute("TTL", f"fdstore:{{{name}}}:earlier:numbers") > DAY_S
    assert store.process(name).create("third").fd == f"fd:{REOPENED_FROM + 2}"


def test_a_generated_tree_that_gave_many_numbers_is_remembered_as_long_as_others(
    store: Store, execute: Any
) -> None:
    proc = store.process()
    execute("HSET", f"fdstore:{{{proc.id}}}:{proc.id}", "next_fd", REOPENED_FROM + 2)

    store.drop_tree(proc.id)

    assert execute("TTL", f"fdstore:{{{proc.id}}}:earlier:numbers") > DAY_S


@pytest.mark.parametrize("name", ["web-server", "run-234567", "chat-7", "a-k3xab7c", "a-k3xab1"])
def test_a_name_that_people_chose_begins_with_one(store: Store, name: str) -> None:
    assert store.process(name).create("text").fd == "fd:1"


def test_a_removed_tree_that_gave_no_number_leaves_no_key(store: Store, execute: Any) -> None:
    store.process("chat-7")

    store.drop_tree("chat-7")

    assert execute("KEYS", "fdstore:{chat-7}:earlier*") == []


def test_a_new_process_begins_above_the_ids_of_a_kept_conversation(store: Store) -> None:
    proc = store.process("later", first_fd=7)

    assert proc.create("a text").fd == "fd:7"
    with pytest.raises(NotFound, match=r"fd:6 was given by another process, not by later.*fd:7") as raised:
        proc.read("fd:6")
    assert raised.value.not_of == "later"
    with pytest.raises(NotFound, match=r"^fd:8 does not exist"):
        proc.read("fd:8")
    assert store.process("later", first_fd=99).create("another").fd == "fd:8"


@pytest.mark.parametrize("number", [0, -1, True, 1.0, "7", 10**9 + 1])
def test_a_first_number_that_is_none_is_refused(store: Store, number: Any) -> None:
    with pytest.raises(InvalidArgument, match="first_fd"):
        store.process("later", first_fd=number)
    assert store.trees() == []
