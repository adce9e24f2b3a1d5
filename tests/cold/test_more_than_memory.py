"""Two gigabytes of text in a store whose Redis has 256 MB: what is not read is cold, and is there."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests import cold_contents
from tests.chaos.conftest import Faults
from tests.waiting import wait_until

MB = 1_000_000
CONTENT_BYTES, CONTENTS = 50 * MB, 40
MEMORY = "256mb"


def line_of(content: int, number: int) -> str:
    return f"content {content:02d} line {number:08d} {number * 2_654_435_761 % 2**32:010d} and some words\n"


LINE_BYTES = len(line_of(0, 0))
LINES = CONTENT_BYTES // LINE_BYTES


class Lines(io.RawIOBase):
    """The lines of a content, as a file."""

    def __init__(self, content: int) -> None:
        self._pieces = self._made(content)

    @staticmethod
    def _made(content: int) -> Iterator[bytes]:
        for first in range(0, LINES, 10_000):
            last = min(first + 10_000, LINES)
            yield "".join(line_of(content, number) for number in range(first, last)).encode()

    def read(self, size: int = -1) -> bytes:
        return next(self._pieces, b"")


@pytest.mark.long
def test_two_gigabytes_under_256_mb_are_all_there(tmp_path: Path, faults: Faults) -> None:
    faults.note("memory full", CONTENTS)
    rng = random.Random(7)
    with PrivateServer({"maxmemory": MEMORY}) as server, fdstore.connect(server.url) as store:
        cold_contents.use_cold(store, f"file://{tmp_path / 'cold'}", least="128KiB")
        store.run(cold_contents.ceilings.put(store.prefix, "cold_mb_per_s", "10000"))
        proc = store.process("t")
        plain = redis.Redis.from_url(server.url)
        most = 0
        for content in range(CONTENTS):
            made = proc.ingest(Lines(content), f"content {content}")
            assert made.bytes == LINES * LINE_BYTES
            assert cold_contents.turn_cold(store) == 1
            most = max(most, plain.info("memory")["used_memory"])
        wait_until(lambda: not plain.info("memory")["lazyfree_pending_objects"], what="the end of freeing")
        info = plain.info("memory")
        stored = sum(path.stat().st_size for path in cold_contents.objects_in(tmp_path / "cold"))
        assert stored == CONTENTS * LINES * LINE_BYTES
        share = info["used_memory"] / stored
        print(
            f"{stored / 1e9:.2f} GB stored, Redis uses {info['used_memory'] / MB:.1f} MB ({share:.2%}) "
            f"of {info['maxmemory'] / MB:.0f} MB, at most {most / MB:.0f} MB while storing"
        )
        assert share < 0.006
        for _ in range(100):
            content, first = rng.randrange(CONTENTS), rng.randrange(1, LINES - 20)
            found = proc.read(f"fd:{content + 1}", mode="line", start=first, count=20)
            assert found.text == "".join(line_of(content, n) for n in range(first - 1, first + 19))
        last = line_of(CONTENTS - 1, LINES - 1)[:24]
        hits = proc.search(f"fd:{CONTENTS}", last).hits
        assert [hit.line for hit in hits] == [LINES]
        proc.end()
        store.drop_tree("t")
        cold_contents.tidy(store)
        assert not cold_contents.objects_in(tmp_path / "cold")
        plain.close()
