"""The questions of a program in Redis, read by another client while workers come and go."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import redis

from fdstore.store.keys import process_keys


class StoredAsks(msgspec.Struct, frozen=True):
    """The questions of one process: those that have an answer, and those that each lane has taken."""

    answered: frozenset[str]
    taken: dict[str, frozenset[str]]

    def in_flight(self, lanes: Iterable[str]) -> frozenset[str]:
        """Return the questions without an answer that these lanes have taken."""
        taken = [self.taken.get(lane, frozenset()) for lane in lanes]
        return frozenset[str]().union(*taken) - self.answered


def read_asks(client: redis.Redis, process: str) -> StoredAsks:
    """Read the questions of a process in one command. Their texts tell them apart."""
    fields: dict[bytes, bytes] = client.hgetall(process_keys("fdstore", process).asks)
    questions: dict[str, str] = {}
    call_of: dict[str, str] = {}
    for name, value in fields.items():
        kind, _, rest = name.decode().partition("/")
        if kind == "ask":
            questions[rest] = msgspec.json.decode(value)["question"]
        elif kind == "lanes":
            call_of |= dict.fromkeys(value.decode().split(), rest) if rest else {}
    answered, taken = set(), {}
    for name, value in fields.items():
        kind, _, rest = name.decode().partition("/")
        if kind == "answer":
            answered.add(questions[rest])
        elif kind == "taken":
            numbers = value.decode().split()
            taken[rest] = frozenset(questions[f"{call_of[rest]}/{number}"] for number in numbers)
    return StoredAsks(frozenset(answered), taken)
