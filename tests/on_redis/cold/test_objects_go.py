"""The object of a content goes with its last holder, and none is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import NotFound, ObjectStoreUnavailable
from fdstore.model.records import Unreadable
from fdstore.store.cold import moving
from fdstore.store.cold.comparing import find_garbage, list_garbage
from fdstore.store.cold.moving import Moved, move_due
from fdstore.store.cold.unneeded import AT_ONCE, count_due, delete_unneeded
from fdstore.store.doctor.audit import check_tree
from fdstore.store.keys import TreeKeys, content_keys
from fdstore.store.objects import object_store
from fdstore.store.trees import ceilings, collect_trees
from fdstore.wire.operation import Operation
from fdstore.wire.scripts import script
from tests import cold_contents

MoveOut = Callable[[], Moved]
Objects = Callable[[], list[Path]]
TEXT = "some line\n" * 2000


def test_the_object_goes_with_the_last_holder(proc: Process, move_out: MoveOut, objects: Objects) -> None:
    proc.create(TEXT)
    child = proc.child(share=["fd:1"])
    move_out()

    proc.close("fd:1")
    move_out()
    assert len(objects()) == 1
    assert child.read("fd:1", start=1).text == TEXT[:4000]

    child.close("fd:1")
    assert move_out().deleted == 1
    assert objects() == []
    assert proc.store.tree("triage").cold_fds == 0


def test_a_replaced_name_lets_its_object_go(proc: Process, move_out: MoveOut, objects: Objects) -> None:
    proc.put("notes", TEXT)
    move_out()
    proc.put("notes", TEXT + "more")

    moved = move_out()

    assert (moved.contents, moved.deleted) == (1, 1)
    assert [each.read_text() for each in objects()] == [TEXT + "more"]
    assert proc.read("name:notes", read_all=True).text == TEXT + "more"


def test_dropping_a_tree_deletes_its_objects(
    proc: Process, move_out: MoveOut, objects: Objects, execute: Any
) -> None:
    for _ in range(3):
        proc.create(TEXT)
    move_out()
    assert len(objects()) == 3

    proc.store.drop_tree("triage")
    move_out()

    assert objects() == []
    assert execute("EXISTS", "fdstore:cold:trees", "fdstore:{triage}:cold:objects") == 0


def test_a_tree_past_its_retention_takes_its_objects_along(
    proc: Process, move_out: MoveOut, objects: Objects, execute: Any
) -> None:
    proc.create(TEXT)
    move_out()
    execute("HSET", "fdstore:{triage}", "used_at", "1000")
    execute("ZADD", "fdstore:trees", 0, "triage")

    store = proc.store
    [tree] = store.run(collect_trees.due_trees(store.prefix))
    assert store.run(collect_trees.collect_tree(tree)).outcome == "gone"

    move_out()
    assert objects() == []


def test_an_object_that_cannot_be_deleted_is_tried_again(
    proc: Process, move_out: MoveOut, objects: Objects, place: Path
) -> None:
    proc.create(TEXT)
    move_out()
    proc.close("fd:1")
    aside = place.rename(place.with_name("aside"))
    place.write_text("not a directory")

    problem = move_due(proc.store).problem
    assert f"file://{place}" in problem

    place.unlink()
    aside.rename(place)
    assert move_out().deleted == 1
    assert objects() == []


class Died(BaseException):
    """The process is killed here."""


STEPS = ["list_upload", "put", "digest_of", "cold_out"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_death_at_any_step_of_a_move_loses_nothing_and_leaves_no_garbage(
    proc: Process,
    objects: Objects,
    place: Path,
    execute: Any,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    when: str,
) -> None:
    proc.create(TEXT)
    store = proc.store
    with monkeypatch.context() as patched:
        _die_at(patched, step, when)
        with pytest.raises(Died):
            move_due(store)

    assert proc.store.process("triage").read("fd:1", read_all=True).text == TEXT
    for where in execute("ZRANGE", "fdstore:{triage}:cold:objects", 0, -1):
        execute("ZADD", "fdstore:{triage}:cold:objects", 1, where)  # an hour later
    moved = move_due(store)
    assert moved.problem == ""
    delete_unneeded(store, f"file://{place}")
    assert len(objects()) == 1
    assert proc.store.process("triage").read("fd:1", read_all=True).text == TEXT
    assert list(find_garbage(store, older_s=-1)) == []


def _die_at(patched: pytest.MonkeyPatch, step: str, when: str) -> None:
    """Let the process die before or after a step; what a dead process cannot do any more is not done."""
    patched.setattr(moving.Mover, "_give_up", lambda *_: None)
    home, name = (object_store, step) if step in ("put", "digest_of") else (moving, step)
    if step == "cold_out":
        home, name = moving, "_both"
    real = getattr(home, name)

    def dying(*arguments: Any) -> Any:
        if when == "before":
            raise Died
        found = real(*arguments)
        if step in ("list_upload", "cold_out"):

            def last() -> Any:
                yield from found
                raise Died

            return last()
        raise Died

    patched.setattr(home, name, dying)


def test_garbage_that_no_list_has_is_found_by_its_name_alone(
    proc: Process, move_out: MoveOut, objects: Objects, place: Path, execute: Any
) -> None:
    proc.create(TEXT)
    move_out()
    [mine] = objects()
    store_id = execute("GET", "fdstore:cold:store").decode()
    lost = mine.with_name(f"triage-7-{store_id}0123456789")
    other = mine.with_name("triage-8-" + ("f" if store_id[0] != "f" else "0") * 6 + "0123456789")
    for each in (lost, other, mine.with_name("a note of a person")):
        each.write_text("text")

    found = list(find_garbage(proc.store, older_s=-1))
    assert [each.where for each in found] == [lost.name]
    assert list(find_garbage(proc.store)) == []  # it is too young

    for each in found:
        proc.store.run(list_garbage(each))
    assert move_out().deleted == 1
    assert sorted(each.name for each in objects()) == sorted([mine.name, other.name, "a note of a person"])


def test_an_object_that_a_record_names_is_never_deleted(
    proc: Process, move_out: MoveOut, objects: Objects, execute: Any
) -> None:
    proc.create(TEXT)
    move_out()
    [mine] = objects()
    execute("ZADD", "fdstore:{triage}:cold:objects", 1, mine.name)  # left by a torn log
    execute("ZADD", "fdstore:{triage}:cold:objects", 1, "../../etc/passwd")

    assert move_out().deleted == 0

    assert objects() == [mine]
    assert execute("EXISTS", "fdstore:{triage}:cold:objects") == 0


def test_the_place_stays_set_while_contents_are_there(proc: Process, move_out: MoveOut) -> None:
    proc.create(TEXT)
    move_out()
    store: Store = proc.store

    with pytest.raises(Exception, match="1 contents are there"):
        store.run(ceilings.put(store.prefix, "cold", None))

    proc.close("fd:1")
    store.run(ceilings.put(store.prefix, "cold", None))
    with pytest.raises(NotFound):
        proc.read("fd:1")


def test_without_a_place_the_error_names_what_is_missing(
    proc: Process, move_out: MoveOut, execute: Any
) -> None:
    proc.create(TEXT)
    proc.create("hot")
    move_out()
    execute("HDEL", "fdstore:limits", "cold")

    with pytest.raises(ObjectStoreUnavailable, match="fdstore limits set cold URL") as caught:
        proc.read("fd:1", start=2)
    assert caught.value.type == "store_unavailable"
    execute("HSET", "fdstore:limits", "cold", "file:///tmp")


def test_members_that_are_no_objects_are_taken_off_the_list(
    proc: Process, move_out: MoveOut, objects: Objects, execute: Any
) -> None:
    """Regression: the mover went on for ever, since it took off other names than those that are listed."""
    proc.create(TEXT)
    move_out()
    odd = [f"triage-1-{'0' * 250}{number}" for number in range(AT_ONCE)]
    odd += ["triage\x01-1-0123456789abcdef", "../../triage-1-0123456789abcdef", "ä-1-0123456789abcdef"]
    for each in odd:
        execute("ZADD", "fdstore:{triage}:cold:objects", 0, each)

    move_out()
    move_out()

    assert execute("EXISTS", "fdstore:{triage}:cold:objects") == 0
    assert len(objects()) == 1


def test_a_list_that_cannot_be_read_hides_no_other(
    proc: Process, move_out: MoveOut, cold_store: Store, execute: Any
) -> None:
    proc.create(TEXT)
    other = cold_store.process("other")
    other.create(TEXT)
    move_out()
    other.close("fd:1")
    execute("SET", "fdstore:{triage}:cold:objects", "x")
    damaged: list[Unreadable] = []

    assert cold_store.run(count_due("fdstore", damaged)) == 1
    assert [each.what for each in damaged] == ["the key fdstore:{triage}:cold:objects"]
    [found] = cold_store.run(check_tree(TreeKeys("fdstore", "triage")))
    assert found.key == "fdstore:{triage}:cold:objects"
    execute("DEL", "fdstore:{triage}:cold:objects")


def test_an_upload_that_counts_as_lost_before_it_is_complete_leaves_no_object(
    proc: Process, objects: Objects, fields: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.create(TEXT)
    real, uploads = object_store.put, []

    def late(url: str, path: str, data: bytes) -> None:
        uploads.append(path)
        if len(uploads) == 1:
            cold_contents.tidy(proc.store)  # another sweeper, when it has lasted for hours
        real(url, path, data)

    with monkeypatch.context() as patched:
        patched.setattr(object_store, "put", late)
        move_due(proc.store)
    move_due(proc.store)

    assert len(uploads) == 2
    assert [each.name for each in objects()] == [fields()["where"]]
    assert proc.read("fd:1", read_all=True).text == TEXT


def test_the_last_step_of_a_move_whose_reply_was_lost_finds_it_done(
    proc: Process, move_out: MoveOut, fields: Any, execute: Any
) -> None:
    d = proc.create(TEXT)
    move_out()
    tree, before = TreeKeys("fdstore", "triage"), fields()

    def again() -> Operation[Any]:
        [reply] = yield [
            script("cold_out")(
                tree=tree.record,
                content=content_keys(tree, "triage/1").record,
                staged_sums=tree.staged_sums("again"),
                created_at=before["created_at"],
                where=before["where"],
                size_bytes=d.bytes,
                page_count=d.pages,
                field_count=d.pages,
                sums_length=9,
                untouched_s=0,
            )
        ]
        return reply

    execute("SET", tree.staged_sums("again"), b"checksums")

    assert proc.store.run(again()) == [b"ok", b"1"]
    assert fields() == before
    assert execute("EXISTS", tree.staged_sums("again")) == 0
    assert proc.read("fd:1", read_all=True).text == TEXT
