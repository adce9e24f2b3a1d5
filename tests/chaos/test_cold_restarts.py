"""A Redis that dies at any step while a content comes back loses no text."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.local.redis_server import PrivateServer
from fdstore.store.cold.moving import load_content
from fdstore.store.contents.returning import bring_back
from fdstore.store.keys import TreeKeys
from fdstore.wire.operation import Disk, Operation
from tests import cold_contents
from tests.chaos.conftest import Faults
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
