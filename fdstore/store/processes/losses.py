"""The losses of a process: when and how each attempt was lost. `lapse.lua` writes one when it counts it.

    recent_losses    "1:1795365840.123000:1:4:crashed:host:81-5e20a7 ..."    in the record of the process

Each is number:time:attempt:records:how:worker. A lost attempt writes nothing itself, and the last ones of a
poisonous process are followed by no record at all, so this is what is left of them. At most `MAX_LOSSES_KEPT`
are kept, the last ones.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import msgspec

from fdstore.model.msgspec_types import prepare
from fdstore.model.records import Count, Moment, Ordinal, Record
from fdstore.wire.script_constants import MAX_LOSSES_KEPT

HowLost = Literal["crashed", "dead", "expired"]

HOW_LOST: dict[HowLost, str] = {
    "crashed": "the process that ran it died",
    "dead": "its worker died",
    "expired": "its worker did not renew its lease",
}
"""How an attempt was lost, in words. Only those that it `crashed` count against a process by themselves."""


class Loss(Record, frozen=True, kw_only=True):
    """The loss `number` (from 1) of a process: of this attempt, when its journal had so many records."""

    number: Ordinal
    at: Moment
    attempt: Count
    records: Count
    how: HowLost
    worker: str


prepare(Loss)


def decode_losses(field: str) -> tuple[Loss, ...]:
    """Return the losses in a field, in order. What is not a loss is left out.

    >>> decode_losses("2:17.5:2:4:dead:host:81-5e20a7 sixteen")
    (Loss(number=2, at=17.5, attempt=2, records=4, how='dead', worker='host:81-5e20a7'),)
    """
    found = []
    for each in field[: 500 * MAX_LOSSES_KEPT].split(" ")[:MAX_LOSSES_KEPT]:
        values = zip(Loss.__struct_fields__, each.split(":", 5), strict=False)
        with suppress(msgspec.ValidationError):
            found.append(msgspec.convert(dict(values), Loss, strict=False))
    return tuple(sorted(found, key=lambda loss: loss.number))
