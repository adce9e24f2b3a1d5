"""The words of a tree, for search: added with what they belong to, bounded, removed with the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, QuotaExceeded, SpawnLimit, StoreFull
from fdstore.model.records import TreeLimits
from fdstore.store.contents import contents
from fdstore.store.doctor.audit import check_tree
from fdstore.store.keys import TreeKeys
from fdstore.store.processes import pipelines, processes
from fdstore.store.streams import streams
from fdstore.tools.process_task import ForkTask, PipeTask, SpawnTask, encode_task

KEY = "fdstore:{triage}:search:words"
MAX_WORDS = 20_000


def words(execute: Any) -> list[str]:
    return [member.decode() for member in execute("ZRANGE", KEY, 0, -1)]


def task(query: Any) -> str:
    return encode_task(SpawnTask(query=query, preload=["fd:1"]))


def test_a_task_is_stored_with_its_words(store: Store, proc: Process, execute: Any) -> None:
    blocks = [{"type": "text", "text": "Sum UP"}, {"type": "image", "source": {"data": "no"}}]
    store.run(processes.create_child(proc.handle, [], state="ready", brief=task(blocks)))
    fork = ForkTask(of="triage", records=1, call="c", prompt="Go on", copy=1, copies=1)
    store.run(processes.create_child(proc.handle, [], state="ready", brief=encode_task(fork)))
    for _ in range(2):
        store.run(processes.launch(proc.handle, task("Read docs/plan.md")))

    assert words(execute) == [
        *("docs task triage", "go task triage.2", "md task triage", "on task triage.2"),
        *("plan.md task triage", "read task triage", "sum task triage.1", "up task triage.1"),
    ]


def test_an_end_is_stored_with_the_words_of_its_answer_and_its_reason(
    store: Store, proc: Process, execute: Any
) -> None:
    failed, exited, long = (proc.child([]) for _ in range(3))
    store.run(processes.end(failed.handle, "failed", exit_code=None, reason="ZeroDivisionError: by zero"))
    store.run(processes.end(exited.handle, answer="Forty-two"))
    fd = store.run(contents.create(long.handle, "Of many words", "x")).fd
    store.run(processes.end(long.handle, answer_fd=fd, long_answer="Of many words"))

    assert [word for word in words(execute) if "source" not in word] == [
        *("by error triage.1", "forty-two answer triage.2", "many answer triage.3", "of answer triage.3"),
        *("two answer triage.2", "words answer triage.3", "zero error triage.1"),
        "zerodivisionerror error triage.1",
    ]  # fmt: skip


def test_a_descriptor_is_stored_with_the_words_of_its_source(
    store: Store, proc: Process, execute: Any
) -> None:
    proc.create("a", source="https://example.org")
    proc.put("my notes", "b", source="Editor")
    proc.rename("my notes", "his notes")
    store.run(streams.open_stream(proc.handle, "tail -f")).break_off("over")
    output = processes.ChildStream("said", 100)
    store.run(processes.create_child(proc.handle, [], output=output))
    commands = PipeTask(commands=[["grep", "-c", "^warn"]], page_size=100)
    made = store.run(pipelines.start(proc.handle, encode_task(commands), title="grep -c"))

    assert sorted(words(execute)) == sorted(
        [
            *("https source triage fd:1", "example.org source triage fd:1", "org source triage fd:1"),
            *(f"{word} source triage name:my notes" for word in ("my", "notes", "editor")),
            *(f"{word} source triage name:his notes" for word in ("his", "notes")),
            *("tail source triage fd:3", "f source triage fd:3"),
            "said source triage fd:4",
            *(f"{word} source triage {made.fd}" for word in ("grep", "c")),
            *(f"{word} source triage {made.stderr_fd}" for word in ("stderr", "of", "grep", "c")),
            *(f"{word} task {made.process}" for word in ("grep", "c", "warn")),
        ]
    )
    store.run(processes.cancel("fdstore", "triage"))


def test_what_is_refused_leaves_no_words(store: Store, execute: Any) -> None:
    limits = TreeLimits(tree_fds=1, tree_processes=2, tree_bytes=1000)
    proc = store.process("triage", limits=limits)
    proc.create("first", source="first")
    child = proc.child([])
    child.end()
    before = words(execute)

    with pytest.raises(QuotaExceeded):
        proc.create("second", source="second")
    with pytest.raises(QuotaExceeded):
        store.run(streams.open_stream(proc.handle, "second"))
    for refused in (
        processes.create_child(proc.handle, [], brief=task("second")),
        pipelines.start(proc.handle, "{}", title="second"),
    ):
        with pytest.raises(SpawnLimit):
            store.run(refused)
    with pytest.raises(FDStoreError):
        store.run(processes.launch(child.handle, task("second")))
    store.run(processes.end(child.handle, answer="second"))

    assert words(execute) == before == ["first source triage fd:1"]


def test_a_call_that_is_repeated_adds_no_words(store: Store, proc: Process, execute: Any) -> None:
    for source in ("one", "two"):
        store.run(contents.create(proc.handle, "text", source, call_id="toolu_1"))

    assert words(execute) == ["one source triage fd:1"]


def test_a_full_redis_stores_no_words_alone_and_those_of_an_end(
    store: Store, proc: Process, execute: Any, fill_redis: Callable[[], None]
) -> None:
    child = proc.child([])
    fill_redis()

    with pytest.raises(StoreFull):
        proc.create("text", source="refused")
    with pytest.raises(StoreFull):
        store.run(processes.create_child(proc.handle, [], brief=task("refused")))
    store.run(processes.end(child.handle, answer="done"))

    assert words(execute) == ["done answer triage.1"]


def test_a_tree_has_a_bounded_number_of_words(store: Store, proc: Process, execute: Any) -> None:
    members = [part for number in range(MAX_WORDS) for part in (0, f"w{number} task triage")]
    execute("ZADD", KEY, *members)

    store.run(processes.end(proc.handle, answer="one too many"))

    assert len(words(execute)) == MAX_WORDS


def test_sources_leave_room_for_tasks_and_answers(store: Store, proc: Process, execute: Any) -> None:
    members = [part for number in range(MAX_WORDS // 2) for part in (0, f"w{number} source triage fd:9")]
    execute("ZADD", KEY, *members)

    proc.create("text", source="one too many")

    assert len(words(execute)) == MAX_WORDS // 2
    execute("ZREM", KEY, "w0 source triage fd:9")
    proc.create("text", source="fits")
    assert "fits source triage fd:2" in words(execute)
    store.run(processes.end(proc.handle, answer="has room"))
    assert "room answer triage" in words(execute)


def test_hostile_sources_are_words_or_nothing(store: Store, proc: Process, execute: Any) -> None:
    proc.create("text", source="<b>\x00\x1b[31m\u202e'--\n")
    proc.create("text", source="...")
    proc.put("a source  of words", "text", source="<i>")

    assert sorted(words(execute)) == sorted(
        [
            *("31m source triage fd:1", "b source triage fd:1"),
            *(
                f"{word} source triage name:a source  of words"
                for word in ("a", "source", "of", "words", "i")
            ),
        ]
    )
    assert store.run(check_tree(TreeKeys("fdstore", "triage"))) == []


def test_a_damaged_key_of_words_is_reported_and_hinders_nothing(
    store: Store, proc: Process, execute: Any
) -> None:
    proc.create("text", source="there")
    execute("ZADD", KEY, 0, "lonely", 0, "x answer other", 0, "x answer triage fd:1")
    [damages] = [store.run(check_tree(TreeKeys("fdstore", "triage")))]
    execute("SET", KEY, "a string")

    proc.create("text", source="more")
    store.run(processes.end(proc.child([]).handle, answer="over"))
    [wrong] = store.run(check_tree(TreeKeys("fdstore", "triage")))

    strange = [each.said.partition(" is ")[0] for each in damages]
    assert strange == ["lonely", "x answer other", "x answer triage fd:1"]
    assert wrong.key == KEY
    assert "WRONGTYPE" in wrong.said
    execute("DEL", KEY)
