"""Machines that are joined by a switch, and its faults.

Servers of this host, such as the scripted model, are not behind the network: `offer` makes one reachable on
each machine at 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Self

from tests.chaos.network.machine import Machine
from tests.chaos.network.switch import PASS, Direction, Rule, Switch
from tests.loop_thread import LoopThread

CHUNK_BYTES = 1 << 16


class Network:
    """Machines with these names, at 10.77.0.1 and on. Every frame between them passes one thread.

    Raises `NoNetwork` if this host cannot make them.
    """

    def __init__(self, names: Sequence[str], rng: random.Random) -> None:
        self.machines: dict[str, Machine] = {}
        try:
            for number, name in enumerate(names, 1):
                self.machines[name] = Machine(name, f"10.77.0.{number}")
        except BaseException:
            self._close_machines()
            raise
        self.switch = Switch({name: machine.tap for name, machine in self.machines.items()}, rng)
        self._relays: list[asyncio.Server] = []
        self._loop = LoopThread("network")
        self._loop.do(self._open())

    def set_rule(self, directions: Sequence[Direction], rule: Rule) -> None:
        """Treat the frames of these directions by this rule from now on."""
        for direction in directions:
            self.switch.set_rule(direction, rule)

    def heal(self) -> None:
        """Let every frame pass from now on."""
        self.set_rule([(source, target) for source in self.machines for target in self.machines], PASS)

    def offer(self, name: str, port: int) -> str:
        """Make port 127.0.0.1:`port` of this host reachable on a machine, and return its address there."""
        machine = self.machines[name]

        async def listen() -> None:
            relay = partial(self._relay, port)
            self._relays.append(await asyncio.start_server(relay, sock=machine.listener))

        self._loop.do(listen())
        return f"127.0.0.1:{machine.port}"

    async def _open(self) -> None:
        self.switch.open()

    async def _relay(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
        for source, target in ((reader, to_server), (from_server, writer)):
            self._loop.start(_copy(source, target))

    def close(self) -> None:
        """End the machines and their network."""

        async def end() -> None:
            self.switch.close()
            for relay in self._relays:
                relay.close()

        self._loop.do(end())
        self._loop.close()
        self._close_machines()

    def _close_machines(self) -> None:
        for machine in self.machines.values():
            machine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Pass on what `source` reads until either end closes."""
    try:
        while data := await source.read(CHUNK_BYTES):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()
