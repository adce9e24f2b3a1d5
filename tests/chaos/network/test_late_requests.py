"""A request that a client has sent into a broken network and given up is not executed later."""

from __future__ import annotations

from pathlib import Path

import pytest

from fdstore.client import Store
from tests.chaos.conftest import Faults
from tests.chaos.network.conftest import CLIENTS
from tests.chaos.network.network import Network
from tests.chaos.network.schedule import REDIS
from tests.chaos.network.switch import CUT
from tests.waiting import wait_until

FASTER = 5


def has_unsent(pid: int) -> bool:
    """Return whether a socket of a machine, also one that its program has closed, has something to send."""
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return any(row[4].partition(":")[0] != "00000000" for row in rows)


@pytest.mark.thorough("unknown outcomes without partitions are tested")
@pytest.mark.parametrize("client", ["blocking", "aio"])
def test_a_put_of_unknown_outcome_does_not_replace_a_later_one(
    client: str, network: Network, url: str, store: Store, faults: Faults
) -> None:
    machine = network.machines[CLIENTS]
    child = machine.start_module(
        "tests.chaos.network.late_put", url, client, environ={"CHAOS_FASTER": f"{FASTER}"}
    )
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        network.set_rule([(CLIENTS, REDIS)], CUT)
        faults.note("link cut towards Redis")
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "unknown_outcome\n"

        network.heal()
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "stored\n"
        wait_until(lambda: not has_unsent(machine.pid), what="the end of what the client has sent")
        child.stdin.close()

    assert store.process("t").read("name:k").text == "second"
