"""The servers and the proxy themselves: each fault is what it says, as a client of S3 sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PermissionDeniedError
from obstore.store import S3Store

from tests.chaos import object_store_proxy as faulty
from tests.chaos.conftest import Faults
from tests.chaos.object_store_proxy import Fault, ObjectStoreProxy
from tests.waiting import wait_until

TEXT = b"".join(b"line %d\n" % number for number in range(2000))
OLD = TEXT.replace(b"line", b"LINE")
PART = TEXT[1000:3000]


def read(objects: S3Store, name: str = "a text") -> bytes:
    return bytes(obstore.get_range(objects, name, start=1000, end=3000))


@pytest.fixture
def stored(behind_proxy: S3Store, s3_proxy: ObjectStoreProxy) -> S3Store:
    """A bucket with a text, seen through the proxy."""
    obstore.put(behind_proxy, "a text", TEXT)
    s3_proxy.forget()
    return behind_proxy


def test_without_a_fault_the_proxy_passes_everything_and_counts_it(
    stored: S3Store, objects: S3Store, s3_proxy: ObjectStoreProxy, place: str, faults: Faults
) -> None:
    faults.note("none on purpose")
    many = b"x" * (12 << 20)

    assert read(stored) == PART
    obstore.put(stored, "in parts/é {x}", many, chunk_size=5 << 20)
    assert bytes(obstore.get(objects, "in parts/é {x}").bytes()) == many
    assert sorted(each["path"] for found in obstore.list(stored) for each in found) == [
        "a text",
        "in parts/é {x}",
    ]
    for name in ("a text", "in parts/é {x}"):  # s3rver may fail to delete two at the same time
        obstore.delete(stored, name)
    assert not list(obstore.list(objects))

    folder = place.removeprefix("s3:/")
    first, *rest = s3_proxy.requests
    assert (first.method, first.path, first.range) == ("GET", f"{folder}/a text", "bytes=1000-2999")
    assert faulty.reads(first)
    assert sum(map(faulty.writes, rest)) == 5, "the begin, three parts, the end"
    assert sum(map(faulty.deletes, rest)) >= 1


def test_only_moto_knows_conditional_puts(
    request: pytest.FixtureRequest, stored: S3Store, objects: S3Store, faults: Faults
) -> None:
    """What the second server is for."""
    faults.note("an object put twice")

    def put_again() -> bytes:
        with_condition: Callable[..., object] = obstore.put
        with_condition(stored, "a text", OLD, mode="create")
        return bytes(obstore.get(objects, "a text").bytes())

    if request.node.callspec.params["s3_url"] == "moto":
        with pytest.raises(AlreadyExistsError):
            put_again()
        assert bytes(obstore.get(objects, "a text").bytes()) == TEXT
    else:
        assert put_again() == OLD


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (faulty.wrong_bytes, lambda got: got != PART and len(got) == len(PART) and got.count(b"\n") > 9),
        (faulty.wrong_bits, lambda got: sum(a != b for a, b in zip(got, PART, strict=True)) == 1),
        (faulty.former_version(OLD), lambda got: got == OLD[1000:3000]),
    ],
)
def test_wrong_bytes_reach_the_client_as_if_they_were_right(
    fault: Fault, found: Callable[[bytes], bool], stored: S3Store, s3_proxy: ObjectStoreProxy
) -> None:
    s3_proxy.inject(fault, when=faulty.reads)

    assert found(read(stored))
    assert read(stored) == PART, "one request met it"


@pytest.mark.parametrize("fault", [faulty.short_body, faulty.short_object, faulty.former_version(OLD[:2000])])
def test_short_bodies_reach_the_client(fault: Fault, stored: S3Store, s3_proxy: ObjectStoreProxy) -> None:
    s3_proxy.inject(fault, when=faulty.reads)

    assert read(stored) in (PART[:1000], OLD[1000:2000])


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (faulty.drop, GenericError),
        (faulty.cut_body, GenericError),
        (faulty.lose_answer, GenericError),
        (faulty.slow_down, GenericError),
        (faulty.slow_down_for_a_second, GenericError),
        (faulty.disk_full, GenericError),
        (faulty.broken_inside, GenericError),
        (faulty.expired, PermissionDeniedError),
        (faulty.hang, GenericError),
        (faulty.whole_object, BaseError),
    ],
)
def test_a_refusal_or_a_broken_answer_is_an_error_and_the_next_request_is_served(
    fault: Fault, error: type[Exception], stored: S3Store, s3_proxy: ObjectStoreProxy
) -> None:
    s3_proxy.inject(fault, when=faulty.reads)

    with pytest.raises(error):
        read(stored)
    assert read(stored) == PART


def test_a_lost_answer_is_one_of_work_that_was_done(
    stored: S3Store, objects: S3Store, s3_proxy: ObjectStoreProxy
) -> None:
    s3_proxy.inject(faulty.lose_answer, when=faulty.writes)

    with pytest.raises(GenericError):
        obstore.put(stored, "another", b"was stored")

    assert bytes(obstore.get(objects, "another").bytes()) == b"was stored"


def test_a_store_that_refuses_connections_takes_them_again_at_the_same_address(
    stored: S3Store, s3_proxy: ObjectStoreProxy
) -> None:
    s3_proxy.refuse()

    with pytest.raises(GenericError):
        read(stored)
    s3_proxy.accept()
    assert read(stored) == PART


@pytest.mark.parametrize(("moment", "stored_then"), [("before", False), ("after", True)])
def test_a_test_is_called_before_or_after_the_request_that_it_names(
    moment: str,
    stored_then: bool,
    stored: S3Store,
    objects: S3Store,
    s3_proxy: ObjectStoreProxy,
    faults: Faults,
) -> None:
    called = threading.Event()
    s3_proxy.at(2, moment, called.set)

    read(stored)
    assert not called.is_set()
    with pytest.raises(GenericError):
        obstore.put(stored, "another", b"more")

    wait_until(called.is_set)
    faults.note("a client met at a request")
    assert ("another" in {each["path"] for found in obstore.list(objects) for each in found}) == stored_then
