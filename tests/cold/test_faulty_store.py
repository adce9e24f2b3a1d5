"""An object store that refuses, hangs, cuts and lies: hot contents do not notice, cold ones are the text or a
typed error, moves that fail change nothing, and what could not be deleted is deleted later."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import S3Store

from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, ObjectStoreUnavailable, StoreLostData
from fdstore.store.cold.moving import move_due
from tests import cold_contents
from tests.chaos import object_store_proxy as faulty
from tests.chaos.conftest import Execute, Faults
from tests.chaos.object_store_proxy import Fault, ObjectStoreProxy
from tests.cold_contents import READERS, Known, long_text
from tests.waiting import wait_until

TEXTS = [Known(long_text(1000), 100), Known(long_text(700, "other"), 4000)]
OLD = long_text(1000, "LINE").encode()

LIES: dict[str, Fault] = {
    "other bytes": faulty.wrong_bytes,
    "another bit": faulty.wrong_bits,
    "a former version": faulty.former_version(OLD),
    "a short body": faulty.short_body,
    "a short object": faulty.short_object,
}
REFUSALS: dict[str, Fault] = {
    "the connection breaks": faulty.drop,
    "the body is cut": faulty.cut_body,
    "503": faulty.slow_down,
    "503 with Retry-After": faulty.slow_down_for_a_second,
    "500": faulty.broken_inside,
    "507": faulty.disk_full,
    "credentials expired": faulty.expired,
}


@pytest.fixture
def proc(store: Store, s3_environment: dict[str, str], place: str) -> Process:
    """A process with texts that are to become cold, and one that is kept hot by its size."""
    cold_contents.use_cold(store, place, least="1000")
    made = store.process("t")
    for known in TEXTS:
        made.create(known.text, page_size=known.page_size)
    made.create("hot")
    return made


@pytest.fixture
def cold(proc: Process, store: Store, s3_proxy: ObjectStoreProxy) -> Process:
    """The same, cold."""
    assert cold_contents.turn_cold(store) == len(TEXTS)
    cold_contents.stay_cold(store)
    s3_proxy.forget()
    return proc


def names(objects: S3Store) -> set[str]:
    return {each["path"] for found in obstore.list(objects) for each in found}


def check_texts(proc: Process, folder: Path) -> None:
    for number, known in enumerate(TEXTS, 1):
        known.check(proc, f"fd:{number}", folder)
    assert proc.read("fd:3").text == "hot"


def outcome(proc: Process, way: str, number: int, folder: Path) -> str:
    """Read in one way; return `text` or the type of the error. Another text fails."""
    try:
        READERS[way](TEXTS[number], proc, f"fd:{number + 1}", folder)
    except FDStoreError as error:
        return error.type
    return "text"


def test_contents_move_to_s3_and_are_read_there_in_every_way(
    cold: Process, store: Store, objects: S3Store, s3_proxy: ObjectStoreProxy, tmp_path: Path, faults: Faults
) -> None:
    faults.note("none on purpose")
    for number in (1, 2):
        assert cold_contents.is_cold(store, "t", f"t/{number}")
    bodies = sorted(bytes(obstore.get(objects, name).bytes()) for name in names(objects))
    assert bodies == sorted(known.text.encode() for known in TEXTS)

    check_texts(cold, tmp_path)

    assert any(map(faulty.reads, s3_proxy.requests))
    assert all(request.range for request in s3_proxy.requests if faulty.reads(request))
    cold.end()
    store.drop_tree("t")
    cold_contents.tidy(store)
    assert names(objects) == set()


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_of_the_object_store_is_lost_data_and_never_another_text(
    lie: str, cold: Process, s3_proxy: ObjectStoreProxy, tmp_path: Path
) -> None:
    s3_proxy.inject(LIES[lie], -1, when=faulty.reads)

    found = {way: outcome(cold, way, 0, tmp_path) for way in READERS}

    assert set(found.values()) == {"store_lost_data"}, found
    assert cold.read("fd:3").text == "hot"
    s3_proxy.heal()
    check_texts(cold, tmp_path)


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_is_store_unavailable_for_cold_contents_alone_and_passes(
    refusal: str, cold: Process, s3_proxy: ObjectStoreProxy, place: str, tmp_path: Path
) -> None:
    s3_proxy.inject(REFUSALS[refusal], -1)

    with pytest.raises(FDStoreError) as caught:
        cold.read("fd:1", start=2)

    assert caught.value.type == "store_unavailable"
    assert place in str(caught.value)
    assert "S3RVER" not in str(caught.value)
    assert cold.read("fd:3").text == "hot"
    assert cold.create("more").fd == "fd:4"
    assert len(cold.list()) == 4
    s3_proxy.heal()
    check_texts(cold, tmp_path)


@pytest.mark.parametrize("refusal", sorted(REFUSALS.keys() - {"credentials expired"}))
def test_a_refusal_that_passes_at_once_is_not_noticed(
    refusal: str, cold: Process, s3_proxy: ObjectStoreProxy, tmp_path: Path
) -> None:
    s3_proxy.inject(REFUSALS[refusal], 2, when=faulty.reads)

    check_texts(cold, tmp_path)


def test_an_object_store_that_takes_no_connections_is_named_and_comes_back(
    cold: Process, s3_proxy: ObjectStoreProxy, place: str, tmp_path: Path
) -> None:
    s3_proxy.refuse()

    with pytest.raises(FDStoreError, match=place) as caught:
        cold.read("fd:1", read_all=True)

    assert caught.value.type == "store_unavailable"
    assert cold.read("fd:3").text == "hot"
    s3_proxy.accept()
    check_texts(cold, tmp_path)


def test_an_object_store_that_hangs_ends_a_read_with_a_typed_error(
    cold: Process, s3_proxy: ObjectStoreProxy
) -> None:
    s3_proxy.inject(faulty.hang, -1)

    with pytest.raises(FDStoreError) as caught:
        cold.read("fd:1")

    assert caught.value.type == "store_unavailable"
    assert cold.read("fd:3").text == "hot"


@pytest.mark.parametrize("refusal", [*REFUSALS, "the answer is lost", "no connection"])
def test_a_move_that_fails_leaves_the_content_as_it_was_and_is_tried_again(
    refusal: str,
    proc: Process,
    store: Store,
    objects: S3Store,
    s3_proxy: ObjectStoreProxy,
    tmp_path: Path,
) -> None:
    if refusal == "no connection":
        s3_proxy.refuse()
    else:
        fault = {**REFUSALS, "the answer is lost": faulty.lose_answer}[refusal]
        s3_proxy.inject(fault, -1, when=faulty.writes if refusal != "the body is cut" else faulty.anything)

    cold_contents.turn_cold(store)

    check_texts(proc, tmp_path)
    s3_proxy.heal()
    if refusal == "no connection":
        s3_proxy.accept()
    cold_contents.tidy(store)
    wait_until(lambda: cold_contents.turn_cold(store) >= 0 and cold_contents.cold_contents_of(store, "t"))
    cold_contents.turn_cold(store)
    assert len(cold_contents.cold_contents_of(store, "t")) == len(TEXTS)
    cold_contents.stay_cold(store)
    cold_contents.tidy(store)
    assert len(names(objects)) == len(TEXTS)
    check_texts(proc, tmp_path)


@pytest.mark.parametrize("lie", LIES)
def test_an_upload_that_cannot_be_read_back_leaves_the_pages_in_redis(
    lie: str, proc: Process, store: Store, s3_proxy: ObjectStoreProxy, tmp_path: Path
) -> None:
    s3_proxy.inject(LIES[lie], -1, when=faulty.reads)

    cold_contents.turn_cold(store)
    read_back = any(map(faulty.reads, s3_proxy.requests))

    s3_proxy.heal()
    check_texts(proc, tmp_path)
    if read_back:
        assert not cold_contents.cold_contents_of(store, "t")


class Mangled:
    """A fault that stores other bytes than those that were sent."""

    def __init__(self, change: Callable[[bytes], bytes]) -> None:
        self._change = change
        self.__name__ = "upload mangled"

    async def __call__(self, request: faulty.StoreRequest, forward: faulty.Forward) -> Any:
        unsigned = {name: value for name, value in request.headers.items() if "content-md5" not in name}
        body = self._change(request.body)
        return await forward(faulty.StoreRequest(request.method, request.target, unsigned, body))


@pytest.mark.parametrize(
    "change",
    [lambda body: body[: len(body) // 2], lambda body: b"X" + body[1:], lambda body: body + b"more"],
    ids=["cut", "changed", "longer"],
)
def test_an_upload_that_was_stored_wrongly_leaves_the_pages_in_redis(
    change: Callable[[bytes], bytes],
    proc: Process,
    store: Store,
    s3_proxy: ObjectStoreProxy,
    tmp_path: Path,
) -> None:
    s3_proxy.inject(Mangled(change), -1, when=lambda request: faulty.writes(request) and bool(request.body))

    cold_contents.turn_cold(store)

    s3_proxy.heal()
    check_texts(proc, tmp_path)
    assert not cold_contents.cold_contents_of(store, "t")


@pytest.mark.parametrize("refusal", ["503", "credentials expired", "the connection breaks", "no connection"])
def test_an_object_that_could_not_be_deleted_is_deleted_later(
    refusal: str, cold: Process, store: Store, objects: S3Store, s3_proxy: ObjectStoreProxy
) -> None:
    if refusal == "no connection":
        s3_proxy.refuse()
    else:
        s3_proxy.inject(REFUSALS[refusal], -1)

    cold.close("fd:1")
    cold_contents.tidy(store)
    assert len(names(objects)) == len(TEXTS)

    s3_proxy.heal()
    if refusal == "no connection":
        s3_proxy.accept()
    cold_contents.tidy(store)
    assert len(names(objects)) == len(TEXTS) - 1
    store.drop_tree("t")
    cold_contents.tidy(store)
    assert names(objects) == set()


def test_a_bucket_that_is_gone_is_unavailable_and_not_an_empty_one(
    cold: Process, store: Store, execute: Execute, objects: S3Store, faults: Faults, tmp_path: Path
) -> None:
    before = execute("HGET", "fdstore:limits", "cold")
    faults.note("no bucket")
    execute("HSET", "fdstore:limits", "cold", "s3://gone/x", "cold_after", "0s")
    late = cold.create(TEXTS[0].text)

    with pytest.raises(ObjectStoreUnavailable, match="s3://gone/x"):
        cold.read("fd:1", start=1)
    moved = move_due(store)
    assert (moved.contents, "s3://gone/x" in moved.problem) == (0, True)
    cold.close(late.fd)
    cold.close("fd:2")
    assert "s3://gone/x" in move_due(store).problem

    execute("HSET", "fdstore:limits", "cold", before, "cold_after", "none")
    cold_contents.tidy(store)
    assert len(names(objects)) == 1
    TEXTS[0].check(cold, "fd:1", tmp_path)


def test_random_faults_never_give_another_text_and_leave_no_garbage(
    proc: Process,
    store: Store,
    objects: S3Store,
    s3_proxy: ObjectStoreProxy,
    execute: Execute,
    assert_counted: Callable[[Execute], None],
    tmp_path: Path,
    seed: int,
) -> None:
    rng = random.Random(seed)
    faults = [*LIES.values(), *REFUSALS.values(), faulty.lose_answer]
    seen: set[str] = set()
    live = dict(enumerate(TEXTS, 1))
    for _ in range(40):
        s3_proxy.heal()
        s3_proxy.inject(rng.choice(faults), rng.randint(1, 3), when=lambda _: rng.random() < 0.5)
        match rng.choice(["sweep", "tidy", "read", "read", "create", "close"]):
            case "sweep":
                cold_contents.turn_cold(store)
            case "tidy":
                cold_contents.tidy(store)
            case "create":
                known = rng.choice(TEXTS)
                live[int(proc.create(known.text, page_size=known.page_size).fd[3:])] = known
            case "close" if len(live) > 1:
                number = rng.choice(sorted(live))
                proc.close(f"fd:{number}")
                del live[number]
            case _:
                number, way = rng.choice(sorted(live)), rng.choice(sorted(READERS))
                try:
                    READERS[way](live[number], proc, f"fd:{number}", tmp_path)
                    seen.add("text")
                except FDStoreError as error:
                    seen.add(error.type)
    s3_proxy.heal()
    print(f"seed {seed}: {sorted(seen)}")
    assert seen <= {"text", "store_lost_data", "store_unavailable"}
    for number, known in live.items():
        known.check(proc, f"fd:{number}", tmp_path)
    cold_contents.turn_cold(store)
    cold_contents.tidy(store)
    assert_counted(execute)
    assert len(names(objects)) == len(cold_contents.cold_contents_of(store, "t"))


def test_lost_data_is_of_one_content(cold: Process, objects: S3Store, faults: Faults, tmp_path: Path) -> None:
    faults.note("object deleted")
    [first] = [
        name for name in names(objects) if bytes(obstore.get(objects, name).bytes()) == TEXTS[0].text.encode()
    ]
    obstore.delete(objects, first)

    with pytest.raises(StoreLostData):
        cold.read("fd:1")

    TEXTS[1].check(cold, "fd:2", tmp_path)
