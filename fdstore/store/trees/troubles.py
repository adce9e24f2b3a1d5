"""The failures and losses of processes in the last hour, as each tree counts them (`count_troubles`).

    troubles    "5803128:2:0 5803130:0:1"    in the record of the tree: span of five minutes: failures: losses

At most `TROUBLE_SPANS` spans are kept, so the field is bounded, and one that is older than an hour counts no
more.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import msgspec

from fdstore.model.msgspec_types import prepare
from fdstore.model.records import Count
from fdstore.text.numbers import MAX_INTEGER
from fdstore.wire.script_constants import TROUBLE_SPAN_S, TROUBLE_SPANS


class Troubles(NamedTuple):
    """Failures and losses within one span, whose number is the Redis time divided by `TROUBLE_SPAN_S`."""

    span: Count
    failures: Count
    losses: Count


prepare(Troubles)


def decode_troubles(field: bytes | None) -> tuple[Troubles, ...]:
    """Return the spans in a field. What is not a span is left out.

    >>> decode_troubles(b"7:2:0 8:0:1")
    (Troubles(span=7, failures=2, losses=0), Troubles(span=8, failures=0, losses=1))
    """
    found = []
    for each in (field or b"")[:1000].decode("utf-8", "replace").split(" ")[: 2 * TROUBLE_SPANS]:
        with suppress(msgspec.ValidationError):
            found.append(msgspec.convert(each.split(":"), Troubles, strict=False))
    return tuple(found)


def sum_troubles(spans: tuple[Troubles, ...], now_s: float) -> tuple[int, int]:
    """Return the failures and the losses of the last hour.

    >>> sum_troubles(decode_troubles(b"7:2:0 8:0:1"), 8 * TROUBLE_SPAN_S + 1.0)
    (2, 1)
    """
    this = int(now_s // TROUBLE_SPAN_S)
    recent = [each for each in spans if this - TROUBLE_SPANS < each.span <= this]
    failures, losses = sum(each.failures for each in recent), sum(each.losses for each in recent)
    return min(failures, MAX_INTEGER), min(losses, MAX_INTEGER)
