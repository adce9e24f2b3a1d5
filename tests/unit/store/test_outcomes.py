"""Replies of scripts as typed errors, whatever bytes a damaged record put into them."""

from __future__ import annotations

import pytest

from fdstore.errors import FDStoreError
from fdstore.store.outcomes import DECLARED, outcome

DAMAGED = b"\xff\xfe{"
KINDS = {
    **dict.fromkeys(("not_found", "gone", "fenced", "format", "damaged", "unsafe", "lost"), 1),
    **dict.fromkeys(("lost_data", "stream_closed", "conflict", "in_use"), 2),
}
"""The number of facts of a reply."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_with_damaged_bytes_is_a_typed_error_that_can_be_shown(kind: str) -> None:
    with pytest.raises(FDStoreError) as raised:
        outcome([kind.encode(), *[DAMAGED] * KINDS[kind]], "triage.1")

    assert str(raised.value).encode().isascii()


@pytest.mark.parametrize("kind", ["spawn_limit", "quota_exceeded"])
def test_a_limit_with_damaged_bytes_in_its_name_is_a_typed_error(kind: str) -> None:
    with pytest.raises(FDStoreError):
        outcome([kind.encode(), DAMAGED, 7], "triage.1")


@pytest.mark.parametrize("kind", DECLARED.values())
def test_a_reply_that_an_error_declares_has_its_facts_as_fields(kind: type[FDStoreError]) -> None:
    place, *facts = kind.sample if kind.fields()[0] in ("process", "tree") else ("triage.1", *kind.sample)
    sent = [fact.encode() if isinstance(fact, str) else fact for fact in facts]

    with pytest.raises(kind) as raised:
        outcome([kind.reply.encode(), *sent], place)
    with pytest.raises(FDStoreError) as damaged:
        outcome([kind.reply.encode(), *[DAMAGED] * len(facts)], "triage.1")

    assert str(raised.value) == str(kind(*kind.sample))
    assert str(damaged.value).encode().isascii()
