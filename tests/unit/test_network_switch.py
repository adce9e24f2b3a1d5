"""The switch between machines, with pairs of sockets as their devices: what reaches whom under which rule."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from tests.chaos.network.switch import CUT, PASS, Rule, Switch
from tests.waiting import PATIENCE_S

NAMES = ("a", "b", "c")
EVERYBODY = b"\xff" * 6
SENT = 2000

Devices = dict[str, socket.socket]


@contextmanager
def devices() -> Iterator[tuple[Devices, dict[str, int]]]:
    """The machines' ends, and the descriptors of the switch's ends."""
    pairs = {name: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for name in NAMES}
    try:
        for pair in pairs.values():
            for end in pair:
                end.setblocking(False)
        yield (
            {name: machine for name, (machine, _) in pairs.items()},
            {name: switch.fileno() for name, (_, switch) in pairs.items()},
        )
    finally:
        for pair in pairs.values():
            for end in pair:
                end.close()


@asynccontextmanager
async def switched() -> AsyncIterator[tuple[Switch, Devices]]:
    """A switch that knows every machine's address, which is its name six times."""
    with devices() as (machines, taps):
        switch = Switch(taps, random.Random(1))
        switch.open()
        try:
            for name in NAMES:
                machines[name].send(frame(EVERYBODY, name, "here I am"))
                for other in set(NAMES) - {name}:
                    assert await received(machines[other]) == "here I am"
            yield switch, machines
        finally:
            switch.close()


def with_switch(play: Callable[[Switch, Devices], Awaitable[None]]) -> None:
    """Play a test with a switch."""

    async def whole() -> None:
        async with switched() as (switch, machines):
            await play(switch, machines)

    asyncio.run(whole())


def address(name: str) -> bytes:
    return name.encode() * 6


def frame(to: bytes, sender: str, text: str) -> bytes:
    return to + address(sender) + text.encode()


async def received(machine: socket.socket) -> str:
    data = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(machine, 1 << 16), PATIENCE_S)
    return data[12:].decode()


def is_silent(machine: socket.socket) -> bool:
    try:
        machine.recv(1 << 16)
    except BlockingIOError:
        return True
    return False


def test_a_frame_reaches_the_machine_of_its_address_alone() -> None:
    @with_switch
    async def play(_: Switch, machines: Devices) -> None:
        machines["a"].send(frame(address("b"), "a", "to b"))

        assert await received(machines["b"]) == "to b"
        assert is_silent(machines["c"])
        assert is_silent(machines["a"])


def test_a_frame_to_everybody_reaches_all_others() -> None:
    @with_switch
    async def play(_: Switch, machines: Devices) -> None:
        machines["a"].send(frame(EVERYBODY, "a", "who is b?"))

        assert [await received(machines[name]) for name in ("b", "c")] == ["who is b?"] * 2
        assert is_silent(machines["a"])


def test_a_direction_that_is_cut_loses_all_and_the_other_one_nothing() -> None:
    @with_switch
    async def play(switch: Switch, machines: Devices) -> None:
        switch.set_rule(("a", "b"), CUT)
        machines["a"].send(frame(address("b"), "a", "lost"))
        machines["a"].send(frame(EVERYBODY, "a", "to all but b"))
        machines["b"].send(frame(address("a"), "b", "back"))

        assert await received(machines["c"]) == "to all but b"
        assert await received(machines["a"]) == "back"
        assert is_silent(machines["b"])
        assert switch.frames["lost"] == 2

        switch.set_rule(("a", "b"), PASS)
        machines["a"].send(frame(address("b"), "a", "healed"))
        assert await received(machines["b"]) == "healed"


@pytest.mark.parametrize("delay_s", [0.02, 0.2])
def test_a_delay_holds_each_frame_for_so_long_and_keeps_their_order(delay_s: float) -> None:
    @with_switch
    async def play(switch: Switch, machines: Devices) -> None:
        switch.set_rule(("a", "b"), Rule(delay_s=delay_s))
        clock = asyncio.get_running_loop().time
        began_s = clock()
        for number in range(5):
            machines["a"].send(frame(address("b"), "a", str(number)))

        assert await received(machines["b"]) == "0"
        assert clock() - began_s >= delay_s
        assert [await received(machines["b"]) for _ in range(4)] == ["1", "2", "3", "4"]


def test_a_loss_of_5_percent_loses_about_so_many_frames() -> None:
    @with_switch
    async def play(switch: Switch, machines: Devices) -> None:
        switch.set_rule(("a", "b"), Rule(loss=0.05))
        before = switch.frames.copy()
        got = 0
        for _ in range(SENT):
            passed, lost = switch.frames["passed"], switch.frames["lost"]
            machines["a"].send(frame(address("b"), "a", "?"))
            while (switch.frames["passed"], switch.frames["lost"]) == (passed, lost):
                await asyncio.sleep(0)
            if switch.frames["passed"] > passed:
                assert await received(machines["b"]) == "?"
                got += 1

        assert got == switch.frames["passed"] - before["passed"]
        assert SENT * 0.03 < switch.frames["lost"] - before["lost"] < SENT * 0.07
