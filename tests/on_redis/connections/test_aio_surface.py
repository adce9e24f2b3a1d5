"""The awaitable API has every call of the blocking one, with the same arguments and documented errors."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import fdstore
from fdstore import aio, client

DUNDERS = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


def public(kind: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(kind).items()
        if not name.startswith("_") or name in DUNDERS or name in DUNDERS.values()
    }


@pytest.mark.parametrize(
    ("blocking", "awaited"),
    [
        (client.Store, aio.Store),
        (client.Process, aio.Process),
        (fdstore.StreamWriter, aio.StreamWriter),
        (fdstore.Toolset, aio.Toolset),
    ],
)
def test_the_awaitable_api_has_every_call_with_the_same_arguments(blocking: type, awaited: type) -> None:
    twins = public(awaited)

    assert {DUNDERS.get(name, name) for name in public(blocking)} == set(twins)
    for name, original in public(blocking).items():
        twin = twins[DUNDERS.get(name, name)]
        assert isinstance(original, property) == isinstance(twin, property)
        if callable(original):
            ours, theirs = inspect.signature(original), inspect.signature(twin)
            assert list(ours.parameters.values()) == list(theirs.parameters.values()), name


@pytest.mark.parametrize(
    "kind", [aio.Store, aio.Process, aio.StreamWriter, aio.Toolset, client.Process, client.Store]
)
def test_every_call_is_documented(kind: type) -> None:
    for name, member in public(kind).items():
        assert name in {*DUNDERS, *DUNDERS.values()} or inspect.getdoc(member), name


def test_connect_accepts_the_same_arguments() -> None:
    assert list(inspect.signature(aio.connect).parameters.values()) == list(
        inspect.signature(client.connect).parameters.values()
    )
