"""What reads of cold contents cost at the object store: requests and bytes, as a server of S3 sees them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from fdstore.client import Process, Store
from tests import cold_contents
from tests.chaos import object_store_proxy as faulty
from tests.chaos.conftest import Faults
from tests.chaos.object_store_proxy import ObjectStoreProxy
from tests.cold_contents import long_text
from tests.slices import lines_of

PAGE = 4000
TEXTS = {"ASCII": long_text(300_000).replace("ä漢", "words"), "others": long_text(300_000)}


@pytest.fixture(params=TEXTS)
def text(request: pytest.FixtureRequest) -> str:
    return TEXTS[request.param]


@pytest.fixture
def proc(
    text: str,
    store: Store,
    s3_environment: dict[str, str],
    s3_proxy: ObjectStoreProxy,
    place: str,
    faults: Faults,
) -> Process:
    faults.note("none on purpose")
    cold_contents.use_cold(store, place)
    made = store.process("t")
    made.create(text, page_size=PAGE)
    cold_contents.turn_cold(store)
    assert cold_contents.is_cold(store, "t", "t/1")
    cold_contents.stay_cold(store)
    s3_proxy.forget()
    return made


def cost(proc: Process, proxy: ObjectStoreProxy, work: Callable[[], object]) -> tuple[int, int]:
    """Return the requests of the work, and the bytes that it got, for a content that was not read before."""
    cold_contents.forget_reads(proc.store)
    proxy.forget()
    work()
    assert all(faulty.reads(request) and request.range for request in proxy.requests)
    return len(proxy.requests), proxy.bytes_served


def test_twenty_lines_anywhere_are_one_range_request(
    proc: Process, text: str, s3_proxy: ObjectStoreProxy
) -> None:
    lines, rng = lines_of(text), random.Random(1)
    places = [1, len(lines) - 19, *(rng.randrange(1, len(lines) - 20) for _ in range(8))]
    costs = []
    for first in places:

        def read(first: int = first) -> None:
            found = proc.read("fd:1", mode="line", start=first, count=20)
            assert found.text == "".join(lines[first - 1 : first + 19])

        costs.append(cost(proc, s3_proxy, read))
    print(f"20 lines: requests, bytes {costs}")
    assert {requests for requests, _ in costs} == {1}
    assert max(size for _, size in costs) <= 3 * PAGE * 4, "the pages that have the lines"


def test_a_page_is_one_range_request_of_its_bytes(
    proc: Process, text: str, s3_proxy: ObjectStoreProxy
) -> None:
    pages = proc.stat("fd:1").pages
    for number in (1, 2, pages // 2, pages):
        found: list[str] = []
        requests, size = cost(
            proc,
            s3_proxy,
            lambda number=number, found=found: found.append(proc.read("fd:1", start=number).text),
        )
        assert (requests, size) == (1, len(found[0].encode()))


def test_all_of_it_is_read_once_in_few_requests(
    proc: Process, text: str, s3_proxy: ObjectStoreProxy, tmp_path: Path
) -> None:
    size = len(text.encode())
    for work in (
        lambda: proc.read("fd:1", read_all=True),
        lambda: proc.search("fd:1", "no such words"),
        lambda: proc.export("fd:1", tmp_path / "out.txt"),
    ):
        requests, got = cost(proc, s3_proxy, work)
        assert got == size
        assert requests <= 1 + size // 1_000_000


def test_what_the_record_knows_asks_the_object_store_nothing(
    proc: Process, s3_proxy: ObjectStoreProxy
) -> None:
    def look() -> None:
        proc.stat("fd:1")
        proc.list()
        twin = proc.fork()
        child = proc.child(share=["fd:1"])
        child.end()
        twin.end()

    assert cost(proc, s3_proxy, look) == (0, 0)


def test_a_hot_content_asks_the_object_store_nothing(proc: Process, s3_proxy: ObjectStoreProxy) -> None:
    proc.create("hot " * 1000)

    assert cost(proc, s3_proxy, lambda: proc.read("fd:2")) == (0, 0)
