"""The requests of a conversation, in each way to offer our tools.

    plain      everything inline, and nothing of ours
    always     our definitions and instructions stand in each request
    appearing  from the first request that shows a descriptor on: they stand where they would have stood from
               the start, so that no request after it begins as an earlier one did
    deferred   they cost nothing before the first descriptor, whose result then brings them: they stand there
               once, and what came before stays as it was

Each request sends all that came before. There is one for each call, and one at the end of each turn for an
answer, whose text is unknown and not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tests.bench.public.replay import Conversation
from tests.bench.tasks.counting import Part

Way = Literal["plain", "always", "appearing", "deferred"]
WAYS: tuple[Way, ...] = ("always", "appearing", "deferred")
"""Those that are compared with `plain`."""


def requests(conversation: Conversation, way: Way, *, with_reads: bool) -> Iterator[tuple[Part, ...]]:
    """Yield the parts of each request, in the order in which a prompt cache compares them."""
    plain_head = conversation.definitions
    offering_head = (*plain_head, *conversation.our_definitions, conversation.our_instructions)
    head = offering_head if way == "always" else plain_head
    said: list[Part] = []
    stored = False
    for turn in conversation.turns:
        said.append(turn.question)
        for exchange in turn.exchanges:
            if exchange.kind == "read" and not (with_reads and way != "plain"):
                continue
            yield (*head, *said)
            said += (exchange.call, exchange.whole if way == "plain" else exchange.shown)
            if exchange.kind == "stored" and not stored:
                stored = True
                if way == "appearing":
                    head = offering_head
                elif way == "deferred":
                    said += (*conversation.our_definitions, conversation.our_instructions)
        yield (*head, *said)
