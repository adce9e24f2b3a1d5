"""An inspector of a store with descriptors of all kinds, one for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests.browser.descriptors.shown import BIG_LINES, HOSTILE, Inspected, big_line
from tests.on_redis.inspector.inspected import Served


@pytest.fixture(scope="session")
def inspected() -> Iterator[Inspected]:
    """The inspector, and the process that has the descriptors."""
    with PrivateServer() as server:
        server.start()
        with fdstore.connect(server.url) as store:
            process = store.process("triage")
            process.create("".join(map(big_line, range(1, BIG_LINES + 1))), source="build.log")
            process.create(HOSTILE, source="<b onclick=alert(1)>source</b>")
            process.create(bytes(range(256)) * 400, source="blob.bin")
            process.create("x" * 2_000_000 + "NEEDLE" + "y" * 1_000_000, source="one line")
            with Served(server.url) as served:
                yield Inspected(served.url, store, process)


@pytest.fixture
def inspector(inspected: Inspected) -> str:
    """The URL of the inspector whose pages `open_page` opens."""
    return inspected.url
