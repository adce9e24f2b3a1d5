"""The place of cold contents: another one, none, a link, what uploads that died left there, bad settings."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, ObjectStoreUnavailable
from fdstore.store.cold import moving
from fdstore.store.cold.comparing import find_garbage, list_garbage
from fdstore.store.cold.moving import Mover, move_due
from fdstore.store.cold.unneeded import list_upload
from fdstore.store.doctor import audit_content
from fdstore.store.keys import TreeKeys, content_keys
from fdstore.store.objects.records import new_where, path_of, store_id
from fdstore.store.trees import ceilings
from fdstore.wire.operation import Operation
from tests import cold_contents
from tests.children import Child
from tests.cold_contents import objects_in
from tests.waiting import PATIENCE_S

TEXT = "some words of a line\n" * 20_000
TREE = TreeKeys("fdstore", "triage")


def put(store: Store, name: str, value: str | None) -> None:
    store.run(ceilings.put(store.prefix, name, value))


@pytest.mark.parametrize(
    ("name", "value"), [("cold_after", "none"), ("cold", None), ("cold", "file://{tmp_path}/other")]
)
def test_a_turn_that_goes_on_obeys_the_settings_of_now(
    cold_store: Store, proc: Process, tmp_path: Path, name: str, value: str | None
) -> None:
    for _ in range(3):
        proc.create(TEXT)
    asked = 0

    def go_on() -> bool:
        nonlocal asked
        asked += 1
        if asked == 2:  # before the tree, and before its first content: it is not cold yet
            put(cold_store, name, value and value.format(tmp_path=tmp_path))
        return True

    moved = Mover(cold_store, go_on=go_on).turn()

    assert (moved.contents, moved.problem) == (0, "")
    assert cold_contents.cold_contents_of(cold_store, "triage") == {}


def test_a_content_that_is_uploaded_while_the_place_changes_stays_and_leaves_nothing_there(
    cold_store: Store, proc: Process, place: Path, tmp_path: Path
) -> None:
    proc.create(TEXT)

    def change(_: float) -> None:
        put(cold_store, "cold", f"file://{tmp_path}/other")

    put(cold_store, "cold_mb_per_s", "0.001")
    moved = Mover(cold_store, wait=change).turn()

    assert (moved.contents, objects_in(place)) == (0, [])
    assert proc.read("fd:1", mode="line", start=7, count=1).text == TEXT[:21]


def test_a_content_whose_place_is_left_in_the_last_moment_stays(
    cold_store: Store, proc: Process, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.create(TEXT)
    become_cold = moving._both

    def after_it_is_left(*commands: Any) -> Operation[list[Any]]:
        put(cold_store, "cold", None)
        return become_cold(*commands)

    monkeypatch.setattr(moving, "_both", after_it_is_left)

    assert move_due(cold_store).contents == 0
    assert objects_in(place) == []
    assert proc.read("fd:1", mode="line", start=7, count=1).text == TEXT[:21]


def test_a_place_with_a_long_path_is_a_place(cold_store: Store, proc: Process, tmp_path: Path) -> None:
    long = tmp_path.joinpath(*["x" * 200] * 3)
    put(cold_store, "cold", f"file://{long}")
    proc.create(TEXT)

    assert move_due(cold_store).contents == 1
    assert proc.read("fd:1", mode="line", start=7, count=1).text == TEXT[:21]
    put(cold_store, "cold", f"file://{long}")
    proc.close("fd:1")
    put(cold_store, "cold", None)
    assert objects_in(long) == []


def test_an_object_that_a_record_names_stays_when_its_place_is_left(
    cold_store: Store, proc: Process, place: Path, execute: Any
) -> None:
    proc.create(TEXT)
    move_due(cold_store)
    [mine] = objects_in(place)
    execute("ZADD", "fdstore:{triage}:cold:objects", 1, mine.name)  # left by a torn log
    execute("HSET", "fdstore:{triage}", "cold_fds", 0)
    execute("SADD", "fdstore:cold:trees", "triage")

    put(cold_store, "cold", None)

    assert objects_in(place) == [mine]
    put(cold_store, "cold", f"file://{place}")
    execute("HSET", "fdstore:{triage}", "cold_fds", 1)
    assert proc.read("fd:1", mode="line", start=7, count=1).text == TEXT[:21]


@pytest.mark.parametrize("value", [None, "file://{tmp_path}/other"])
def test_a_place_is_left_without_the_objects_that_nobody_needs(
    cold_store: Store, proc: Process, place: Path, tmp_path: Path, value: str | None
) -> None:
    proc.create(TEXT)
    move_due(cold_store)
    assert len(objects_in(place)) == 1
    proc.close("fd:1")

    put(cold_store, "cold", value and value.format(tmp_path=tmp_path))

    assert objects_in(place) == []


DIES = """
import os, signal, sys
from fdstore.store.objects import object_store

def pieces():
    yield b"x" * (20 << 20)
    os.kill(os.getpid(), signal.SIGKILL)
    yield b"never"

object_store.put_pieces(sys.argv[1], sys.argv[2], pieces(), 30 << 20)
"""


@pytest.mark.parametrize("is_listed", [True, False])
def test_what_an_upload_that_died_left_is_deleted(cold_store: Store, place: Path, is_listed: bool) -> None:
    where = new_where("triage/3", cold_store.run(store_id("fdstore")))
    path = path_of(TREE, where)
    with Child([sys.executable, "-c", DIES, f"file://{place}", path]) as child:
        assert child.wait(PATIENCE_S) == -signal.SIGKILL
    [left] = objects_in(place)
    assert left.name.startswith(f"{where}#")
    if is_listed:
        cold_store.run(list_upload(TREE, where, -1))
    else:
        [garbage] = find_garbage(cold_store, older_s=-1)
        assert garbage.where == where
        cold_store.run(list_garbage(garbage))

    assert move_due(cold_store).problem == ""

    assert objects_in(place) == []


def beside(
    audit: Operation[Any], step: int, happens: Callable[[], object], store: Store
) -> tuple[list[Any], bool]:
    """Check a content; before the request with this number something happens. Return what the check found,
    and whether it has so many requests."""

    def served() -> Operation[Any]:
        count, reply = 0, None
        try:
            while True:
                request = audit.send(reply)
                if count == step:
                    happens()
                count += 1
                reply = yield request
        except StopIteration as done:
            return done.value[0], count > step

    found: tuple[list[Any], bool] = store.run(served())
    return found


def test_doctor_finds_no_damage_in_a_content_that_moves_at_any_step_of_its_check(
    cold_store: Store, proc: Process
) -> None:
    step, is_reached = 0, True
    while is_reached:
        proc.create(TEXT)
        content = f"triage/{proc.list()[-1].fd[3:]}"
        audit = audit_content.check_content(
            TREE, content, {"triage"}, frozenset(), audit_content.AuditProgress(lambda *_: None)
        )
        found, is_reached = beside(audit, step, lambda: move_due(cold_store), cold_store)
        assert found == [], step
        step += 1
    assert step > 3


def test_a_directory_behind_a_link_is_that_to_which_it_leads_now(
    cold_store: Store, proc: Process, tmp_path: Path
) -> None:
    link, disks = tmp_path / "link", [tmp_path / "disk 1", tmp_path / "disk 2"]
    disks[0].mkdir()
    link.symlink_to(disks[0])
    put(cold_store, "cold", f"file://{link}")
    proc.create(TEXT)
    move_due(cold_store)
    shutil.copytree(disks[0], disks[1])
    link.unlink()
    link.symlink_to(disks[1])
    shutil.rmtree(disks[0])

    assert proc.read("fd:1", mode="line", start=7, count=1).text == TEXT[:21]
    proc.create(TEXT)
    assert move_due(cold_store).contents == 1
    proc.close("fd:1")
    proc.close("fd:2")
    move_due(cold_store)
    assert objects_in(disks[1]) == []


BAD_PLACES = [
    *[
        "file:///",
        "file://///",
        "file:///srv//cold",
        "file:///srv/%E4",
        "file:///srv/a%0Ab",
        "file:///srv/a\\b",
    ],
    *["s3://bucket//x", "file:///srv/./x", "file:///srv/%2e%2e/x"],
]


@pytest.mark.parametrize("url", BAD_PLACES)
def test_a_place_that_cannot_work_is_refused(store: Store, url: str) -> None:
    with pytest.raises(InvalidArgument):
        put(store, "cold", url)


@pytest.mark.parametrize("command", [("LPUSH", "x"), ("SET", "abc"), ("SADD", "x")])
def test_a_wrong_count_of_reads_keeps_nobody_from_reading(
    proc: Process, move_out: Callable[[], Any], execute: Any, command: tuple[str, str]
) -> None:
    proc.create(TEXT)
    move_out()
    name, value = command
    execute(name, content_keys(TREE, "triage/1").reads, value)

    assert proc.read("fd:1", mode="line", start=7, count=1).text == TEXT[:21]


@pytest.mark.parametrize("name", ["cold", "cold_after", "cold_min", "cold_mb_per_s"])
def test_a_setting_that_is_no_text_is_named_with_its_remedy(store: Store, execute: Any, name: str) -> None:
    execute("HSET", "fdstore:limits", name, b"\xff")

    with pytest.raises(InvalidArgument, match=f"setting {name}.*fdstore limits set {name}"):
        move_due(store)


def test_a_wrong_place_is_the_fault_of_the_setting_not_of_the_content(
    proc: Process, move_out: Callable[[], Any], execute: Any
) -> None:
    proc.create(TEXT)
    move_out()
    execute("HSET", "fdstore:limits", "cold", "s3://")

    with pytest.raises(ObjectStoreUnavailable, match="its setting is wrong"):
        proc.read("fd:1", mode="line", start=7, count=1)
