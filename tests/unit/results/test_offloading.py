"""The values that are content blocks, and the round trips that an offloaded value costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fdstore import FDConfig, Toolset
from fdstore.client import Store
from fdstore.results.content_blocks import BLOCKS, content_blocks
from tests.unit.conftest import CountingRunner

TEXT = {"type": "text", "text": "a"}


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_block_has_its_type_and_one_of_its_fields(kind: str) -> None:
    for field in BLOCKS[kind]:
        for block in ({"type": kind, field: "x"}, SimpleNamespace(type=kind, **{field: "x"})):
            assert content_blocks([block]) == [block]
    assert content_blocks([{"type": kind}]) is None


@pytest.mark.parametrize(
    "value",
    [
        [],
        "text",
        TEXT,
        [TEXT, "text"],
        [TEXT, None],
        [TEXT, {"type": "bug", "text": "x"}],
        [{"type": ["text"], "text": "x"}],
        [{"text": "x"}],
        {"content": [TEXT]},
    ],
    ids=repr,
)
def test_any_other_value_is_not_blocks(value: Any) -> None:
    assert content_blocks(value) is None


@pytest.mark.parametrize(
    ("value", "call_id", "first", "repeated"),
    [
        ("x" * 20, None, 0, 0),
        ("x" * 20, "call_0", 0, 0),
        (ValueError("short"), "call_0", 0, 0),
        ("x" * 21, None, 1, 1),  # stores it
        ("x" * 21, "call_0", 3, 1),  # records the request before, and the result afterwards
    ],
)
def test_a_short_value_and_a_repeated_call_cost_little(
    store: Store, runner: CountingRunner, value: Any, call_id: str | None, first: int, repeated: int
) -> None:
    tools = Toolset(store.process("triage"), config=FDConfig(max_direct_output_chars=20))
    costs = []

    for _ in range(2):
        before = len(runner.trips)
        tools.offload(value, call_id=call_id)
        costs.append(len(runner.trips) - before)

    assert costs == [first, repeated]
