"""Lines and events are found however a stream is cut into chunks."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.integrations.gateway.http_relay import is_local
from fdstore.integrations.gateway.lines import read_lines
from fdstore.integrations.gateway.sse import EventSplitter, data_of, field_of, with_data

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
    ],
)
def test_only_this_machine_is_local(host: str | None, origin: str | None, expected: bool) -> None:
    assert is_local(host, origin) is expected
