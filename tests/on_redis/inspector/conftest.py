"""Fixtures of the tests of the inspector: requests to its app, without a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fdstore.agents.loop.conversation import Result, Start
from fdstore.client import Process
from tests.on_redis.inspector import inspected
from tests.on_redis.inspector.inspected import Get, Inspect
from tests.on_redis.inspector.journals import SHORT, answer, ask_about_parts, converse, failed_child

HOSTILE = "</style></textarea><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e\" ' &lt;"


@pytest.fixture
def get(redis_url: str) -> Get:
    """`get(*paths, headers=None, tally=None, **options)` returns the response of a path, or those of
    several; `options` are those of `Options`."""
    return partial(inspected.get, redis_url)


@pytest.fixture
def inspect(redis_url: str) -> Inspect:
    """`inspect(visit, tally=None, **options)` returns what `visit` returns, called with a client."""
    return partial(inspected.inspect, redis_url)


@pytest.fixture
def hostile(proc: Process, execute: Callable[..., Any]) -> Process:
    """A run with a text that attacks in each of its fields."""
    proc.create(HOSTILE * 3, source=HOSTILE)
    proc.put("notes/<script>.md", HOSTILE)
    proc.create(b"\x00\xff" * 20)
    call = ("t1", "tool<i>", {"fd": "javascript:alert(1)", HOSTILE: HOSTILE, "nested": {"<u>": [HOSTILE]}})
    converse(
        proc,
        Start(system=HOSTILE, content=HOSTILE),
        answer(HOSTILE, call, ("t2", "x", HOSTILE)),
        Result(call="t1", content=HOSTILE, is_error=True),
        *SHORT[1:],
    )
    execute("HSET", proc.handle.keys.record, "program", HOSTILE)
    failed_child(proc, HOSTILE, exit_code=3)
    ask_about_parts(proc.child(share=["fd:1"]), 60)
    return proc
