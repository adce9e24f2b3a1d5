"""A call that is repeated with the same id takes effect once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.results.context import Context
from fdstore.store.processes import tool_calls
from tests.elements import only
from tests.on_redis.conformance.calling import LINES, started


def test_a_text_is_written_once(proc: Process, tools: Toolset) -> None:
    first = tools.call("write_fd", {"data": "note"}, "toolu_1")

    assert tools.call("write_fd", {"data": "note"}, "toolu_1") == first
    assert len(proc.list()) == 1
    assert only(tools.call("write_fd", {"data": "note"}, "toolu_2").content)["fd"] == "fd:2"


@pytest.mark.parametrize("name", ["read_fd", "search_fd"])
def test_a_part_is_extracted_once_even_if_its_source_is_closed_meanwhile(
    proc: Process, tools: Toolset, name: str
) -> None:
    proc.create(LINES)
    arguments = {
        "fd": "fd:1#L1-3",
        "extract_to_new_fd": True,
        **({"pattern": "."} if name == "search_fd" else {}),
    }
    first = tools.call(name, arguments, "toolu_1")
    proc.close("fd:1")

    assert tools.call(name, arguments, "toolu_1") == first
    assert [held.fd for held in proc.list()] == ["fd:2"]


def test_a_descriptor_is_closed_once(proc: Process, tools: Toolset) -> None:
    proc.create("x")

    first = tools.call("close_fd", {"fd": 1}, "toolu_1")

    assert tools.call("close_fd", {"fd": 1}, "toolu_1") == first
    assert not first.is_error


def test_a_function_of_the_user_is_called_once(proc: Process) -> None:
    called: list[int] = []

    def count(length: int) -> str:
        called.append(length)
        return str(len(called)) * length

    tools = Toolset(proc, python=[count])

    for call, length in (("toolu_1", 3), ("toolu_2", 9000)):
        first = tools.call("count", {"length": length}, call)
        assert tools.call("count", {"length": length}, call) == first
    assert called == [3, 9000]
    assert len(proc.list()) == 1


def test_a_function_that_failed_is_not_called_again(proc: Process) -> None:
    called: list[int] = []

    def fail() -> str:
        called.append(1)
        raise ValueError("no")

    tools = Toolset(proc, python=[fail])

    assert tools.call("fail", {}, "toolu_1") == tools.call("fail", {}, "toolu_1")
    assert called == [1]


def test_a_refused_call_may_be_retried(proc: Process, tools: Toolset) -> None:
    assert tools.call("close_fd", {"fd": 1}, "toolu_1").is_error

    proc.create("x")

    assert not tools.call("close_fd", {"fd": 1}, "toolu_1").is_error


def test_a_child_is_started_once(store: Store, proc: Process, context: Context) -> None:
    proc.create(LINES)
    arguments = {"program_name": "reader", "query": "q", "additional_preload_fds": ["fd:1#L1"]}

    first = started(store, context, "toolu_1", **arguments)
    proc.close("fd:1")

    assert started(store, context, "toolu_1", **arguments).id == first.id
    assert len(store.tree("triage").members) == 2


def test_a_child_is_started_once_even_if_the_call_result_was_not_stored(
    store: Store, proc: Process, context: Context, execute: Callable[..., Any]
) -> None:
    arguments = {"program_name": "reader", "query": "q"}
    first = started(store, context, "toolu_1", **arguments)

    execute(
        "HDEL", "fdstore:{triage}:triage:calls", "toolu_1/outcome"
    )  # as if the worker had died just before this was stored

    assert started(store, context, "toolu_1", **arguments).id == first.id
    assert [held.fd for held in proc.list()] == ["fd:1"]


def test_wrapping_twice_with_one_call_id_stores_once(proc: Process, tools: Toolset) -> None:
    assert tools.wrap("x" * 9000, call_id="toolu_1") == tools.wrap("x" * 9000, call_id="toolu_1")
    assert len(proc.list()) == 1


def test_reads_may_share_a_call_id_and_store_nothing(
    proc: Process, tools: Toolset, execute: Callable[..., Any]
) -> None:
    proc.create(LINES)

    for name, arguments in (
        ("read_fd", {"fd": 1}),
        ("read_fd", {"fd": "fd:1#L2"}),
        ("search_fd", {"fd": 1, "pattern": "5"}),
        ("list_fds", {}),
    ):
        assert not tools.call(name, arguments, "toolu_1").is_error

    assert execute("EXISTS", "fdstore:{triage}:triage:calls") == 0


def test_the_first_stored_result_of_a_call_is_kept(proc: Process, store: Store) -> None:
    store.run(tool_calls.store_result(proc.handle, "toolu_1", "first"))
    store.run(tool_calls.store_result(proc.handle, "toolu_1", "second"))

    assert store.run(tool_calls.identify(proc.handle, "toolu_1", "post 1")) == "first"
    assert store.run(tool_calls.identify(proc.handle, "toolu_2", "post 2")) is None
