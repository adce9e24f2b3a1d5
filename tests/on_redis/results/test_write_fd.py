"""`write_fd` in pieces, and `read_fd` of a stream that is still being written."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fdstore import Toolset
from fdstore.client import Process
from fdstore.store.streams.streams import PIECE_CHARS
from tests.elements import Element, only
from tests.waiting import stretched

TOOLS = ["read_fd", "write_fd", "list_fds"]


@pytest.fixture
def tools(proc: Process) -> Toolset:
    return Toolset(proc, enabled=TOOLS)


def show(tools: Toolset, name: str, call: str | None = None, **arguments: Any) -> Element:
    return only(tools.call(name, arguments, call).content)


def test_a_text_is_written_in_pieces_and_ended(proc: Process, tools: Toolset) -> None:
    opened = show(tools, "write_fd", data="one\n", eof=False)
    added = show(tools, "write_fd", data="two\n", fd="fd:1")
    ended = show(tools, "write_fd", data="three\n", fd=1, eof=True)

    assert opened["fd"] == "fd:1"
    assert (opened["chars"], opened["total_chars"], opened["state"]) == ("4", "4", "open")
    assert (added["chars"], added["total_chars"], added["state"]) == ("4", "8", "open")
    assert (ended["chars"], ended["total_chars"], ended["state"]) == ("6", "14", "sealed")
    assert proc.read("fd:1").text == "one\ntwo\nthree\n"
    assert proc.stat("fd:1").exit_code == 0


def test_eof_can_be_written_without_text(proc: Process, tools: Toolset) -> None:
    show(tools, "write_fd", data="", eof=False)

    assert show(tools, "write_fd", data="", fd="fd:1", eof=True)["state"] == "sealed"
    assert proc.read("fd:1").text == ""


def test_a_repeated_call_writes_once_even_if_its_result_was_lost(
    proc: Process, tools: Toolset, execute: Any
) -> None:
    text = "x" * (PIECE_CHARS + 1000)
    calls = [
        {"data": "begin ", "eof": False},
        {"data": text, "fd": "fd:1"},
        {"data": " end", "fd": "fd:1", "eof": True},
    ]

    for number, arguments in enumerate(calls):
        first = tools.call("write_fd", arguments, f"toolu_{number}")
        # as if the worker had died before it stored the result of the call
        execute("HDEL", "fdstore:{triage}:triage:calls", f"toolu_{number}/outcome")
        assert tools.call("write_fd", arguments, f"toolu_{number}") == first

    assert proc.read("fd:1", read_all=True).text == f"begin {text} end"
    assert [each.fd for each in proc.list()] == ["fd:1"]


def test_a_write_interrupted_between_two_pieces_resumes_there(
    proc: Process, tools: Toolset, execute: Any
) -> None:
    text = "".join(f"{number}\n" for number in range(60_000))
    show(tools, "write_fd", data="", eof=False)
    tools.call("write_fd", {"data": text[:PIECE_CHARS], "fd": "fd:1"}, "toolu_1")
    execute("HDEL", "fdstore:{triage}:triage:calls", "toolu_1/outcome", "toolu_1/request")

    tools.call("write_fd", {"data": text, "fd": "fd:1"}, "toolu_1")

    assert proc.read("fd:1", read_all=True).text == text


def test_concurrent_calls_are_serialized(proc: Process, tools: Toolset) -> None:
    show(tools, "write_fd", data="", eof=False)
    lines = [f"line {number}\n" for number in range(12)]

    with ThreadPoolExecutor(3) as threads:
        written = list(threads.map(lambda line: tools.call("write_fd", {"data": line, "fd": 1}), lines))

    assert not any(each.is_error for each in written)
    assert sorted(proc.read("fd:1", read_all=True).text.splitlines(keepends=True)) == sorted(lines)


def test_writing_to_an_ended_stream_is_an_error(proc: Process, tools: Toolset) -> None:
    proc.create("sealed")
    broken = proc.open_stream(source="build")
    broken.fail("power cut")

    for fd, state in (("fd:1", "sealed"), ("fd:2", "broken")):
        refused = show(tools, "write_fd", data="more", fd=fd)
        assert (refused["type"], refused["fd"]) == ("stream_closed", fd)
        assert f"{fd} is {state} and takes no more text" in refused.message


def test_a_stream_of_another_process_cannot_be_written(proc: Process, tools: Toolset) -> None:
    show(tools, "write_fd", data="mine\n", eof=False)
    child = Toolset(proc.child(share=["fd:1"]), enabled=TOOLS)
    with proc.open_stream(source="program") as out:
        of_the_parent = show(child, "write_fd", data="x", fd="fd:1")
        of_a_program = show(tools, "write_fd", data="x", fd=out.fd)

    assert of_the_parent["type"] == of_a_program["type"] == "invalid_argument"
    assert "fd:1 is written by triage;" in of_the_parent.message
    assert "fd:2 is written by a program;" in of_a_program.message
    assert show(tools, "write_fd", data="", fd="fd:9")["type"] == "not_found"


def test_eof_must_be_a_boolean(tools: Toolset) -> None:
    assert show(tools, "write_fd", data="x", eof="yes")["type"] == "invalid_argument"


def test_read_fd_waits_until_the_part_is_complete(tools: Toolset) -> None:
    show(tools, "write_fd", data="one", eof=False)

    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(show, tools, "read_fd", fd="fd:1", mode="line", wait_seconds=20)
        show(tools, "write_fd", data=" line\n", fd="fd:1")
        read = reading.result()

    assert (read.body, read["state"], read["eof"]) == ("one line\n", "open", "false")


def test_read_fd_shows_the_available_text_at_its_timeout(tools: Toolset) -> None:
    show(tools, "write_fd", data="one", eof=False)
    began = time.monotonic()

    read = show(tools, "read_fd", fd="fd:1", wait_seconds=0.3)

    assert 0.25 < time.monotonic() - began < stretched(5)
    assert (read.body, read["state"], read["eof"]) == ("one", "open", "false")


@pytest.mark.parametrize(
    "seconds", [-1, "long", True, math.inf, -math.inf, math.nan, 1e300, 10**400, 86_401, "1e9"]
)
def test_read_fd_refuses_an_invalid_wait(tools: Toolset, seconds: object) -> None:
    assert show(tools, "read_fd", fd="fd:1", wait_seconds=seconds)["type"] == "invalid_argument"


def test_a_wait_over_a_minute_or_given_as_a_string_is_accepted(tools: Toolset) -> None:
    show(tools, "write_fd", data="done")

    for seconds in (3600, 3600.0, "3600"):
        assert show(tools, "read_fd", fd="fd:1", wait_seconds=seconds).body == "done"


def test_a_waiting_read_shows_no_stream_state_for_an_ordinary_text(proc: Process, tools: Toolset) -> None:
    proc.create("one\n")
    with proc.open_stream() as out:
        out.write("two\n")

    never, once = (show(tools, "read_fd", fd=fd, wait_seconds=5) for fd in ("fd:1", "fd:2"))

    assert not {"state", "eof", "exit_code"} & never.attributes.keys()
    assert (once["state"], once["eof"], once["exit_code"]) == ("sealed", "true", "0")


def test_read_fd_extracts_the_text_written_so_far(proc: Process, tools: Toolset) -> None:
    show(tools, "write_fd", data="one\ntwo", eof=False)

    made = show(tools, "read_fd", fd="fd:1#L1", extract_to_new_fd=True, wait_seconds=5)

    assert proc.read(made["new_fd"]).text == "one\n"
