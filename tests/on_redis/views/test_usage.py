"""Memory usage by tree, process, descriptor and unfinished upload; and the holders of contents."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import NotFound
from fdstore.store.keys import process_keys
from fdstore.store.processes import processes
from fdstore.store.views import usage


def test_trees_are_listed_by_size(store: Store) -> None:
    store.process("small").create("x")
    store.process("large").create("äx" * 100)
    store.process("empty")

    found = store.run(usage.usage_of_trees("fdstore"))

    assert [(each.tree, each.bytes, each.contents, each.live) for each in found.trees] == [
        ("large", 300, 1, 1),
        ("small", 1, 1, 1),
        ("empty", 0, 0, 1),
    ]


def test_usage_shows_bytes_held_and_bytes_freed_by_dropping_a_process(store: Store, proc: Process) -> None:
    proc.create("shared" * 10)
    proc.create("own")
    child = proc.child(share=["fd:1"])
    child.create("of the child")

    found = store.run(usage.usage_of_tree("fdstore", "triage"))

    assert [(each.process, each.descriptors, each.bytes, each.freed) for each in found.processes] == [
        ("triage.1", 2, 72, 12),
        ("triage", 2, 63, 3),
    ]
    assert [(each.fd, each.bytes, each.holders) for each in found.descriptors] == [
        ("fd:1", 60, 2),
        ("fd:2", 3, 1),
    ]
    assert found.trees[0].bytes == 75


def test_descriptors_of_an_ended_process_are_listed(store: Store, proc: Process) -> None:
    proc.create("kept")
    store.run(processes.end(proc.handle, "failed", release=False))

    found = store.run(usage.usage_of_process(process_keys("fdstore", "triage")))

    assert [(each.fd, each.bytes, each.source) for each in found.descriptors] == [("fd:1", 4, "text")]


def test_usage_lists_more_descriptors_than_one_request_fetches(store: Store, proc: Process) -> None:
    count = usage.AT_ONCE + 7
    for number in range(count):
        proc.create(str(number))
    progress: list[int] = []

    found = store.run(usage.usage_of_tree("fdstore", "triage", progress.append))

    assert len(found.descriptors) == count
    assert sum(each.bytes for each in found.descriptors) == found.trees[0].bytes
    assert progress == [usage.AT_ONCE, count]


def test_an_upload_in_progress_is_listed_until_it_completes(
    store: Store, proc: Process, execute: Any
) -> None:
    seen: list[usage.UsageReport] = []

    class Source(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            seen.append(store.run(usage.usage_of_trees("fdstore")))
            return super().read(size)

    proc.ingest(Source(b"a line\n" * 300_000), "large")

    [staged] = seen[-1].staged
    assert (staged.process, staged.source, staged.bytes > 1_000_000) == ("triage", "large", True)
    assert seen[-1].trees[0].staged == staged.bytes
    assert store.run(usage.usage_of_trees("fdstore")).staged == []
    assert execute("EXISTS", "fdstore:{triage}:staging") == 0


def test_the_unfinished_upload_of_a_killed_client_is_listed_until_it_is_removed(
    store: Store, proc: Process, execute: Any, cut_off_upload: Callable[[], None]
) -> None:
    cut_off_upload()
    of_process = store.run(usage.usage_of_process(process_keys("fdstore", "triage")))
    assert [each.source for each in of_process.staged] == ["cut off"]
    assert store.run(usage.usage_of_tree("fdstore", "triage")).trees[0].staged > 200_000

    execute("DEL", *execute("KEYS", "*:staging:*"))  # as when they have expired

    assert store.run(usage.usage_of_tree("fdstore", "triage")).staged == []


def test_damaged_records_are_named_and_hide_nothing_else(store: Store, proc: Process, execute: Any) -> None:
    proc.create("good")
    proc.create("bad")
    store.process("other").create("x")
    execute("HSET", "fdstore:{triage}:triage:fd:2", "bytes", "many")
    execute("HSET", "fdstore:{triage}:triage:fds", "fd:7", "nonsense")
    execute("HSET", "fdstore:{other}", "bytes", "?")

    of_tree = store.run(usage.usage_of_tree("fdstore", "triage"))
    of_all = store.run(usage.usage_of_trees("fdstore"))

    assert [each.fd for each in of_tree.descriptors] == ["fd:1"]
    assert {each.problem for each in of_tree.unreadable} == {
        "nonsense is not a content",
        "bytes is 'many'",
    }
    assert [each.tree for each in of_all.trees] == ["triage"]
    assert [each.what for each in of_all.unreadable] == ["the record of tree other"]
    execute("HDEL", "fdstore:{triage}:triage:fds", "fd:7")
    execute("HSET", "fdstore:{triage}:triage:fd:2", "bytes", "3")
    execute("HSET", "fdstore:{other}", "bytes", "1")


def test_usage_of_unknown_names_is_not_found(store: Store, proc: Process) -> None:
    with pytest.raises(NotFound, match="triage"):
        store.run(usage.usage_of_tree("fdstore", "other"))
    with pytest.raises(NotFound, match="triage"):
        store.run(usage.usage_of_process(process_keys("fdstore", "triage.7")))


def test_holders_of_a_content_are_listed_with_their_own_ids_for_it(store: Store, proc: Process) -> None:
    proc.create("x")
    proc.child(share=["fd:1"])
    answering = proc.child()
    answering.create("the answer")
    answering.create("kept")
    proc.create("own")
    store.run(processes.end(answering.handle, answer_fd="fd:2", release=False))
    twin = proc.fork()
    store.run(processes.end(twin.handle, "failed", release=False))

    shared = store.run(usage.holders(proc.handle, "fd:1"))
    handed_over = [d.fd for d in proc.list() if d.producer == answering.id]

    assert [(each.process, each.state, each.fd) for each in shared] == [
        ("triage", "open", "fd:1"),
        ("triage.1", "open", "fd:1"),
        ("triage.3", "failed", "fd:1"),
    ]
    received = store.run(usage.holders(proc.handle, handed_over[0]))
    assert [(each.process, each.fd) for each in received] == [
        ("triage", "fd:3"),
        ("triage.2", "fd:2"),
        ("triage.3", "fd:3"),
    ]
    with pytest.raises(NotFound, match="fd:9 does not exist; there are: fd:1"):
        store.run(usage.holders(proc.handle, "fd:9"))
