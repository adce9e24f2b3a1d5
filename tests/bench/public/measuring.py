"""What a conversation costs in each way, in characters and in estimated tokens.

With a prompt cache, a request that begins with all of an earlier one pays a tenth for that much, and the full
price for the rest. A request with another definition or other instructions than those before pays for all of
it. Left out is that some providers ask a quarter more for what they write to the cache, and that they cache
nothing below some thousand tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple

from fdstore.client import Process
from tests.bench.public.package import PublicTask
from tests.bench.public.replay import Conversation, replay
from tests.bench.public.ways import WAYS, Way, requests
from tests.bench.tasks.counting import count, estimate

Group = Literal["all", "long", "short"]
"""long: the tasks with a result over `LONG_CHARS`, whatever the threshold; short: the others."""
LONG_CHARS = 8000
WRITE_PRICE = 1.0


class Cost(NamedTuple):
    """The size of all requests: as sent, and as paid for with a prompt cache; and both again where each
    stored result is searched once and one page of it is read."""

    sent: int
    cached: int
    sent_with_reads: int
    cached_with_reads: int


class Measured(NamedTuple):
    """A task in one way; `plain` has no threshold and stores nothing."""

    group: Group
    threshold: int | None
    way: Way
    stored: int
    characters: Cost
    tokens: Cost


def measure(
    tasks: Iterable[PublicTask],
    new_process: Callable[[], AbstractContextManager[Process]],
    thresholds: Collection[int],
    groups: Collection[Group],
) -> Iterator[list[Measured]]:
    """Yield what each task costs in all ways, at one threshold or more; [] for one in none of the groups."""
    for task in tasks:
        group: Group = "long" if task.longest_result > LONG_CHARS else "short"
        measured: list[Measured] = []
        if "all" in groups or group in groups:
            for threshold in thresholds:
                with new_process() as process:
                    conversation = replay(task, process, threshold)
                measured += (_measured(group, threshold, way, conversation) for way in WAYS)
            measured.append(_measured(group, None, "plain", conversation))
        yield measured


def _measured(group: Group, threshold: int | None, way: Way, conversation: Conversation) -> Measured:
    exchanges = (each for turn in conversation.turns for each in turn.exchanges)
    stored = 0 if way == "plain" else sum(each.kind == "stored" for each in exchanges)
    return Measured(
        group, threshold, way, stored, cost(conversation, way, len), cost(conversation, way, estimate)
    )


def cost(conversation: Conversation, way: Way, size: Callable[[str], int]) -> Cost:
    """Return what a conversation costs in one way, by this size of a text."""
    alone, reading = (
        count(list(requests(conversation, way, with_reads=with_reads)), size, WRITE_PRICE)
        for with_reads in (False, True)
    )
    return Cost(alone.sent, alone.cached, reading.sent, reading.cached)
