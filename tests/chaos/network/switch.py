"""A switch in user space, which joins the devices of machines, and drops and delays their frames.

The kernel of a test machine may lack what delays and loses packets, so frames pass through this process. Each
direction between two machines has a `Rule` of its own: a link that works in one direction only is a common
fault, and a hard one.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

MAX_FRAME_BYTES = 1 << 16
FRAMES_AT_ONCE = 64
ADDRESS_BYTES = 6

Direction = tuple[str, str]
"""The machine that sends, and the one that receives."""


class Rule(NamedTuple):
    """The treatment of a frame in one direction: the chance that it is lost, and its delay."""

    loss: float = 0.0
    delay_s: float = 0.0


PASS = Rule(delay_s=0.005)
"""Without a fault: as between distant machines, so that calls are under way whenever a fault begins."""

CUT = Rule(loss=1.0)


class Switch:
    """Forwards frames between the TAP devices of machines, by their names, on the running event loop."""

    def __init__(self, taps: Mapping[str, int], rng: random.Random) -> None:
        self._taps = dict(taps)
        self._rng = rng
        self._rules: dict[Direction, Rule] = {}
        self._homes: dict[bytes, str] = {}
        self.frames: Counter[str] = Counter()
        """The numbers of frames `passed` and `lost`."""

    def open(self) -> None:
        """Begin to forward."""
        for name, tap in self._taps.items():
            asyncio.get_running_loop().add_reader(tap, self._receive, name, tap)

    def close(self) -> None:
        """Stop forwarding. The devices stay open."""
        for tap in self._taps.values():
            asyncio.get_running_loop().remove_reader(tap)
        self._taps.clear()

    def set_rule(self, direction: Direction, rule: Rule) -> None:
        """Treat the frames of one direction by this rule from now on. May be called from any thread."""
        self._rules[direction] = rule

    def _receive(self, source: str, tap: int) -> None:
        for _ in range(FRAMES_AT_ONCE):
            try:
                frame = os.read(tap, MAX_FRAME_BYTES)
            except BlockingIOError:
                return
            to, sender = frame[:ADDRESS_BYTES], frame[ADDRESS_BYTES : 2 * ADDRESS_BYTES]
            self._homes[sender] = source
            home = self._homes.get(to)
            for target in [home] if home else self._taps:
                if target != source:
                    self._forward(frame, source, target)

    def _forward(self, frame: bytes, source: str, target: str) -> None:
        rule = self._rules.get((source, target), PASS)
        if rule.loss and self._rng.random() < rule.loss:
            self.frames["lost"] += 1
        else:
            self.frames["passed"] += 1
            asyncio.get_running_loop().call_later(rule.delay_s, self._deliver, frame, target)

    def _deliver(self, frame: bytes, target: str) -> None:
        if target in self._taps:
            with suppress(OSError):  # the queue of the device is full: as on any network, the frame is lost
                os.write(self._taps[target], frame)
