"""A Redis that dies at any step while a content comes back loses no text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis

import fdstore
from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.local.redis_server import PrivateServer
from fdstore.store.cold.moving import load_content
from fdstore.store.contents.returning import bring_back
from fdstore.store.keys import TreeKeys
from fdstore.wire.operation import Disk, Operation
from tests import cold_contents
from tests.chaos.conftest import Faults
from tests.chaos.torn_log import STOCK, TornLogServer, command_midpoints
from tests.cold_contents import Known, long_text

TEXT = Known(long_text(20_000))
MOMENTS = ("before", "after")


class Deaths:
    """Kills a server at one request of an operation, and starts it on the same directory."""

    def __init__(self, server: PrivateServer, number: int, moment: str) -> None:
        self._server, self._number, self._moment = server, number, moment
        self.happened = False

    def within(self, operation: Operation[Any]) -> Operation[Any]:
        """Run an operation whose server dies before or after one of its requests to Redis."""
        reached, number = next(operation), 0
        while True:
            number += not isinstance(reached, Disk)
            self._die(number, "before")
            try:
                reply = yield reached
            except FDStoreError as error:
                reached = operation.throw(error)
                continue
            self._die(number, "after")
            try:
                reached = operation.send(reply)
            except StopIteration as end:
                return end.value

    def _die(self, number: int, moment: str) -> None:
        if (number, moment) == (self._number, self._moment) and not self.happened:
            self._server.kill()
            self._server.restart()
            self.happened = True


@pytest.mark.thorough("many megabytes")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_redis_that_dies_while_a_content_comes_back_has_it_in_one_of_both_places(
    moment: str, server: PrivateServer, store: Store, faults: Faults, tmp_path: Path
) -> None:
    place = tmp_path / "cold"
    cold_contents.use_cold(store, f"file://{place}")
    proc = store.process("t")
    proc.create(TEXT.text)
    outcomes = set()
    for number in count(1):
        cold_contents.turn_cold(store)
        assert cold_contents.is_cold(store, "t", "t/1")
        info, _ = store.run(load_content(TreeKeys(store.prefix, "t"), "t/1"))
        deaths = Deaths(server, number, moment)

        try:
            outcomes.add(store.run(deaths.within(bring_back(info))))
        except FDStoreError as error:
            outcomes.add(error.type)

        if not deaths.happened:
            break
        faults.note(f"killed {moment} a request")
        TEXT.check(store.process("t"), "fd:1", tmp_path)
        assert cold_contents.garbage(store, place) <= cold_contents.listed_for_deletion(store)
    print(f"{number - 1} requests: {sorted(map(str, outcomes))}")
    cold_contents.stay_cold(store)
    cold_contents.tidy(store)
    assert not cold_contents.garbage(store, place)
    TEXT.check(store.process("t"), "fd:1", tmp_path)
    assert number > 3, "Redis must have died at more than the first steps"


@pytest.fixture
def torn_server(tmp_path: Path) -> Iterator[TornLogServer]:
    with PrivateServer(STOCK) as server:
        yield TornLogServer(server, tmp_path / "saved")


def lose_what_expires(url: str) -> None:
    """Have everything expire that does."""
    with redis.Redis.from_url(url) as plain:
        for key in plain.keys("*"):
            if plain.ttl(key) >= 0:
                plain.delete(key)


@pytest.mark.thorough("a restart of Redis for each command")
@pytest.mark.parametrize(
    "known", [Known(long_text(60), 100), Known(long_text(500), 20)], ids=["short", "long"]
)
@pytest.mark.parametrize("way", ["out", "back"])
def test_a_log_torn_in_any_command_of_a_move_loses_nothing_then_or_later(
    known: Known, way: str, torn_server: TornLogServer, faults: Faults, tmp_path: Path
) -> None:
    """The half of a script may take effect at the second start, when what it staged has expired."""
    url, place = torn_server.server.url, tmp_path / "cold"
    torn_server.begin()
    with fdstore.connect(url) as store:
        cold_contents.use_cold(store, f"file://{place}")
        store.process("t").create(known.text, page_size=known.page_size)
        start = torn_server.log.size
        assert cold_contents.turn_cold(store) == 1
        cold_contents.stay_cold(store)
        if way == "back":
            start = torn_server.log.size
            info, _ = store.run(load_content(TreeKeys(store.prefix, "t"), "t/1"))
            assert store.run(bring_back(info))
    torn_server.save()

    for at in command_midpoints(torn_server.log, start):
        torn_server.put_back(at)
        faults.note(f"torn at byte {at - start}")
        with fdstore.connect(url) as store:
            assert store.process("t").read("fd:1", read_all=True).text == known.text
            store.process("t").create("another")
        torn_server.restart()
        lose_what_expires(url)
        with fdstore.connect(url) as store:
            known.check(store.process("t"), "fd:1", tmp_path)
