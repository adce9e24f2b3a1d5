"""Lines and events are found however a stream is cut into chunks."""

from __future__ import annotations

import json
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from fdstore.hosts.gateway.lines import read_lines
from fdstore.hosts.gateway.messages import TOO_LONG
from fdstore.hosts.gateway.sse import EventSplitter, data_of, field_of, with_data
from fdstore.http.address import LOOPBACK_NAMES
from fdstore.http.callers import calls_one_of

ENDS = ("\n", "\r\n")
words = st.text(st.characters(categories=["L", "N"]), max_size=8)
chunk_sizes = st.lists(st.integers(1, 9), min_size=1)


def chunks(data: bytes, sizes: list[int]) -> list[bytes]:
    found = []
    for number in range(len(data)):
        if not data:
            break
        size = sizes[number % len(sizes)]
        found.append(data[:size])
        data = data[size:]
    return found


@given(st.lists(st.tuples(words, words), max_size=4), st.sampled_from(ENDS), words, chunk_sizes)
def test_events_are_split_at_empty_lines(
    events: list[tuple[str, str]], end: str, rest: str, sizes: list[int]
) -> None:
    written = [f"id: {id}{end}: a comment{end}data: {data}{end}{end}".encode() for id, data in events]
    splitter = EventSplitter()

    found = [
        event for chunk in chunks(b"".join(written) + rest.encode(), sizes) for event in splitter.feed(chunk)
    ]

    assert found == written
    assert splitter.rest() == rest.encode()
    for event, (id, data) in zip(found, events, strict=True):
        assert (field_of(event, b"id"), data_of(event)) == (id.encode(), data.encode())
        assert with_data(event, data.encode()) == event


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_data_in_several_lines_is_one_text_and_is_replaced_as_one(end: bytes) -> None:
    event = end.join([b"data: {", b"event: message", b"data:1}", b"", b""])

    assert data_of(event) == b"{\n1}"
    assert with_data(event, b"[]") == end.join([b"data: []", b"event: message", b"", b""])
    assert data_of(b": alive" + end + end) is None


@given(st.lists(st.binary(max_size=20), max_size=5), chunk_sizes)
def test_lines_keep_their_bytes(parts: list[bytes], sizes: list[int]) -> None:
    data = b"\n".join(parts)
    ours, theirs = os.pipe()

    def write() -> None:
        for chunk in chunks(data, sizes):
            os.write(theirs, chunk)
        os.close(theirs)

    writer = threading.Thread(target=write)
    writer.start()
    lines = list(read_lines(ours))
    writer.join()
    os.close(ours)

    assert b"".join(lines) == data
    assert all(line.endswith(b"\n") for line in lines[:-1])
    assert all(line.count(b"\n") <= 1 for line in lines)


def lines_of(data: bytes, limit: int) -> tuple[list[bytes], list[bytes]]:
    """The lines that are read of this data, and what is answered to whoever wrote it."""
    ours, theirs = os.pipe()
    writer = threading.Thread(target=lambda: [os.write(theirs, data), os.close(theirs)])
    writer.start()
    answered: list[bytes] = []
    lines = [bytes(line) for line in read_lines(ours, answered.append, limit)]
    writer.join()
    os.close(ours)
    return lines, answered


LONG = b"x" * (1 << 20)
REFUSED = {"code": -32000, "message": TOO_LONG}


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":"a","result":{"text":"%s"}}' % LONG,
        b'{"result":{"text":"%s"},"id":"a","jsonrpc":"2.0"}' % LONG,
        b'{"result":{"text":"%s","id":7},"id" : "a"}' % LONG,
    ],
)
def test_an_answer_that_is_too_long_is_an_error_in_its_place(line: bytes) -> None:
    lines, answered = lines_of(b'{"id":1}\n' + line + b'\n{"id":2}\n', len(LONG))

    assert (lines[0], lines[2:], answered) == (b'{"id":1}\n', [b'{"id":2}\n'], [])
    assert json.loads(lines[1]) == {"jsonrpc": "2.0", "id": "a", "error": REFUSED}


def test_a_request_that_is_too_long_is_answered_with_an_error() -> None:
    request = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"text":"%s"}}\n' % LONG

    lines, [answer] = lines_of(request + b"next", len(LONG))

    assert lines == [b"next"]
    assert json.loads(answer) == {"jsonrpc": "2.0", "id": 7, "error": REFUSED}


def test_a_line_that_is_as_long_as_it_may_be_is_read() -> None:
    assert lines_of(b"x" * 100 + b"\n", 100) == ([b"x" * 100 + b"\n"], [])


@pytest.mark.parametrize("size", [1 << 10, 1 << 16, 1 << 22])
@pytest.mark.parametrize("id", [b'"id":"a",', b""])
def test_an_event_that_is_too_long_is_an_error_in_its_place(size: int, id: bytes) -> None:
    long = b'event: message\nid: 7\ndata: {"jsonrpc":"2.0",%s"result":{"text":"%s"}}\n\n' % (id, LONG)
    splitter = EventSplitter(Raw(b'"a"'), limit=len(LONG))

    stream = b"data: 1\n\n" + long + b"data: 2\n\n"
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    events = [bytes(event) for piece in pieces for event in splitter.feed(piece)]

    assert (events[0], events[2:]) == (b"data: 1\n\n", [b"data: 2\n\n"])
    assert json.loads(data_of(events[1]) or b"") == {"jsonrpc": "2.0", "id": "a", "error": REFUSED}
    assert field_of(events[1], b"id") == b"7"


@given(chunk_sizes)
def test_a_byte_order_mark_begins_a_stream_and_no_event(sizes: list[int]) -> None:
    splitter = EventSplitter()
    stream = b"\xef\xbb\xbfdata: 1\r\n\r\ndata: 2\r\n\r\n"

    events = [event for chunk in chunks(stream, sizes) for event in splitter.feed(chunk)]

    assert [data_of(event) for event in events] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("localhost:80", None, True),
        ("[::1]:80", "http://localhost:3000", True),
        ("127.0.0.1", "http://127.0.0.1", True),
        ("localhost.evil.example", None, False),
        (None, None, False),
        ("localhost", "null", False),
        ("localhost", "http://localhost@evil.example", False),
        ("[", None, False),
        ("localhost", "http://[", False),
        ("localhost@evil.example", None, False),
    ],
)
def test_only_this_machine_is_local(host: str | None, origin: str | None, expected: bool) -> None:
    assert calls_one_of(LOOPBACK_NAMES, host, origin) is expected
