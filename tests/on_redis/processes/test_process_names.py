"""Names of processes: which are accepted, and hostile ones."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.client import Store
from fdstore.errors import InvalidArgument

HOSTILE = [
    *("", "Triage", "-a", "_a", "a" * 49, "a b", "a:b", "a{b", "a}", "tri\u00e4ge", "a\n", "\uff11", "a/b"),
    *("a.", ".1", "a.0", "a.01", "a.x", "a.1.", "a..1", "a.1\n", "a.\uff11", "a." + "1" * 17, "x" * 10**6),
    *(5, b"a", True, ["a"]),
]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:12])
def test_hostile_names_are_refused(store: Store, name: Any, execute: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        store.process(name)

    assert len(str(caught.value)) < 300
    assert execute("KEYS", "*") == []


@pytest.mark.parametrize("name", ["a", "0", "a" * 48, "a-b_c-1"])
def test_valid_names_are_accepted(store: Store, name: str) -> None:
    assert store.process(name).id == name
    assert store.process(name).child().id == f"{name}.1"
