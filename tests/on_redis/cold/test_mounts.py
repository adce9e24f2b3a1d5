"""A directory that is not mounted is not an empty place, and another place is looked at before it is set."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, ObjectStoreUnavailable, StoreLostData
from fdstore.store.cold import comparing
from fdstore.store.cold.moving import Moved, move_due
from fdstore.store.objects import object_store
from fdstore.store.objects.object_store import MARKER
from fdstore.store.trees import ceilings
from tests.cold_contents import READERS, Known, cold_contents_of

MoveOut = Callable[[], Moved]
Objects = Callable[[], list[Path]]
KNOWN = Known("".join(f"line {number} with ümlauts\n" for number in range(3000)))
NOT_MOUNTED = "is it mounted"


@contextmanager
def unmounted(place: Path, *, leaves: str = "an empty directory") -> Iterator[None]:
    """Have a place look as where its disk is not mounted."""
    aside = place.rename(place.with_name("aside"))
    if leaves == "an empty directory":
        place.mkdir()
    yield
    shutil.rmtree(place, ignore_errors=True)
    aside.rename(place)


def set_place(store: Store, place: Path) -> None:
    store.run(ceilings.put(store.prefix, "cold", f"file://{place}"))


@pytest.mark.parametrize("leaves", ["an empty directory", "nothing"])
def test_reads_of_a_directory_that_is_not_mounted_are_unavailable(
    leaves: str, proc: Process, move_out: MoveOut, place: Path, tmp_path: Path
) -> None:
    proc.create(KNOWN.text)
    move_out()
    proc.create("hot")

    with unmounted(place, leaves=leaves):
        for read in READERS.values():
            with pytest.raises(ObjectStoreUnavailable, match=NOT_MOUNTED) as caught:
                read(KNOWN, proc, "fd:1", tmp_path)
            assert caught.value.where == f"file://{place}"
        assert proc.read("fd:2").text == "hot"

    KNOWN.check(proc, "fd:1", tmp_path)


@pytest.mark.parametrize("leaves", ["an empty directory", "nothing"])
@pytest.mark.parametrize("size", ["small", "in parts"])
def test_nothing_moves_below_the_mount_point(
    leaves: str, size: str, proc: Process, move_out: MoveOut, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if size == "in parts":
        monkeypatch.setattr("fdstore.store.cold.moving.PUT_AT_ONCE_BYTES", 10_000)
    proc.create(KNOWN.text)

    with unmounted(place, leaves=leaves):
        moved = move_due(proc.store)
        assert (moved.contents, NOT_MOUNTED in moved.problem) == (0, True)
        assert not place.exists() or list(place.iterdir()) == []
        assert proc.read("fd:1", read_all=True).text == KNOWN.text

    assert move_out().contents == 1


def test_a_directory_that_is_unmounted_during_an_upload_gets_no_content(
    proc: Process, move_out: MoveOut, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.create(KNOWN.text)
    real, mounts = object_store._open, []

    def unmounting(url: str) -> Any:
        if not mounts:
            mounts.append(unmounted(place))
            mounts[0].__enter__()
        return real(url)

    with monkeypatch.context() as patched:
        patched.setattr(object_store, "_open", unmounting)
        moved = move_due(proc.store)

    assert (moved.contents, NOT_MOUNTED in moved.problem) == (0, True)
    mounts[0].__exit__(None, None, None)
    assert proc.read("fd:1", read_all=True).text == KNOWN.text
    assert move_out().contents == 1


def test_an_object_is_not_deleted_as_long_as_its_directory_is_away(
    proc: Process, move_out: MoveOut, objects: Objects, place: Path
) -> None:
    proc.create(KNOWN.text)
    move_out()
    proc.close("fd:1")

    with unmounted(place):
        moved = move_due(proc.store)
        assert (moved.deleted, NOT_MOUNTED in moved.problem) == (0, True)
        with pytest.raises(ObjectStoreUnavailable, match=NOT_MOUNTED):
            list(comparing.find_garbage(proc.store))

    assert move_out().deleted == 1
    assert objects() == []


def test_a_missing_object_in_a_mounted_directory_is_lost(
    proc: Process, move_out: MoveOut, objects: Objects
) -> None:
    proc.create(KNOWN.text)
    move_out()
    shutil.rmtree(objects()[0].parents[1])

    with pytest.raises(StoreLostData, match="is missing"):
        proc.read("fd:1")


def test_an_empty_place_is_refused_while_contents_are_cold(
    proc: Process, move_out: MoveOut, place: Path, tmp_path: Path
) -> None:
    proc.create(KNOWN.text)
    move_out()
    [(content, where)] = cold_contents_of(proc.store, "triage").items()
    (tmp_path / "empty").mkdir()

    for other in (tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(InvalidArgument, match="copy all objects there first") as caught:
            set_place(proc.store, other)
        assert content in str(caught.value)
        assert where in str(caught.value)

    assert not (tmp_path / "none").exists()
    assert list((tmp_path / "empty").iterdir()) == []
    KNOWN.check(proc, "fd:1", tmp_path)


def test_contents_follow_their_objects_to_another_place(
    proc: Process, move_out: MoveOut, place: Path, tmp_path: Path
) -> None:
    proc.create(KNOWN.text)
    move_out()
    shutil.copytree(place / "fdstore", tmp_path / "other" / "fdstore")

    set_place(proc.store, tmp_path / "other")
    shutil.rmtree(place)

    KNOWN.check(proc, "fd:1", tmp_path)
    assert (tmp_path / "other" / MARKER).exists()
    proc.create(KNOWN.text)
    assert move_out().contents == 2  # the first one came back meanwhile


def test_one_lost_object_does_not_keep_the_others_where_they_are(
    proc: Process, move_out: MoveOut, objects: Objects, place: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        proc.create(KNOWN.text)
    move_out()
    objects()[0].unlink()
    shutil.copytree(place, tmp_path / "other")

    set_place(proc.store, tmp_path / "other")

    KNOWN.check(proc, "fd:2", tmp_path)


def test_setting_the_same_place_makes_no_place_of_an_empty_mount_point(
    proc: Process, move_out: MoveOut, objects: Objects, place: Path
) -> None:
    proc.create(KNOWN.text)
    move_out()

    with unmounted(place), pytest.raises(InvalidArgument, match="mount it"):
        set_place(proc.store, place)

    objects()[0].unlink()
    set_place(proc.store, place)  # which it is


def test_a_directory_that_cannot_be_made_is_refused(store: Store, tmp_path: Path, execute: Any) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidArgument, match=f"with an empty file {MARKER} in it"):
        set_place(store, tmp_path / "file" / "below")

    assert execute("HGET", "fdstore:limits", "cold") is None
