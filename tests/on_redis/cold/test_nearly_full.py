"""A Redis that is nearly full: contents move before their time, those unread for longest first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

import fdstore
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.cold.moving import Mover, move_due
from fdstore.store.trees import ceilings
from tests import cold_contents
from tests.waiting import wait_until

pytest.importorskip("obstore")

TEXT = "a line of a log with some words\n" * 120_000
IDLE_S = {1: 100, 2: 300, 3: 10}
"""Content -> for how many seconds it was not read."""


class Nearly:
    """A store with three texts, and its Redis."""

    def __init__(self, server: PrivateServer, store: Store, place: Path) -> None:
        self.store = store
        self.client = redis.Redis.from_url(server.url)
        proc = store.process("t")
        for number, idle_s in IDLE_S.items():
            proc.create(TEXT)
            key = f"fdstore:{{t}}:t:fd:{number}:pages"
            self.client.restore(key, 0, self.client.dump(key), replace=True, idletime=idle_s)
        cold_contents.use_cold(store, f"file://{place}", after="24h", least="1KiB")

    def fill_to(self, share: float) -> None:
        self.freed()
        self.client.config_set("maxmemory", int(self.client.info("memory")["used_memory"] / share))

    def freed(self) -> bool:
        """Wait until the memory of what was removed is free."""
        wait_until(
            lambda: not self.client.info("memory")["lazyfree_pending_objects"], what="the end of freeing"
        )
        return True

    @property
    def cold(self) -> list[int]:
        return [number for number in IDLE_S if cold_contents.is_cold(self.store, "t", f"t/{number}")]


@pytest.fixture
def nearly(tmp_path: Path) -> Iterator[Nearly]:
    with PrivateServer() as server, fdstore.connect(server.url) as store:
        made = Nearly(server, store, tmp_path / "cold")
        yield made
        made.client.close()


def test_contents_move_until_there_is_room_and_the_one_unread_for_longest_first(nearly: Nearly) -> None:
    nearly.fill_to(0.95)

    assert Mover(nearly.store, go_on=nearly.freed).turn().contents == 1
    assert nearly.cold == [2]


def test_what_was_read_in_the_last_minute_stays_in_a_full_redis(nearly: Nearly) -> None:
    nearly.client.config_set("maxmemory", 1)

    move_due(nearly.store)

    assert nearly.cold == [1, 2]
    assert nearly.store.process("t").read("fd:2", mode="line", start=7, count=1).text == TEXT[:32]


@pytest.mark.parametrize(("share", "after"), [(0.85, "24h"), (0.95, "none")])
def test_nothing_moves_before_its_time_with_room_nor_if_nothing_is_to_move(
    share: float, after: str, nearly: Nearly
) -> None:
    nearly.store.run(ceilings.put("fdstore", "cold_after", after))
    nearly.fill_to(share)

    move_due(nearly.store)

    assert nearly.cold == []
