"""How much of one answer a client reads, whatever its server sends."""

from __future__ import annotations

import gzip

import pytest

from fdstore.agents.loop.models import transport
from fdstore.agents.loop.models.base import ModelFailed
from fdstore.agents.loop.models.transport import MAX_ANSWER_BYTES, MAX_ERROR_BYTES, MAX_LINE_BYTES
from tests.dialects import current, every_dialect
from tests.unit.agents.loop.endless_server import HEAD, WHOLE, begun, client_of, endless, error, streamed

PIECE = b"a" * (1 << 20)
BUFFERED_BYTES = 32 << 20
"""More than the sockets of a connection hold."""


def packed(text: bytes) -> bytes:
    return gzip.compress(text, compresslevel=1)


@every_dialect
def test_an_event_that_is_too_long_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_LINE_BYTES", 2 << 20)

    with (
        endless(begun() + b"data: ", PIECE, fast=True) as server,
        client_of(server) as client,
        pytest.raises(ModelFailed, match="sends an event of more than 2 MiB"),
    ):
        client.query()

    assert server.requests == 1
    assert server.sent < (2 << 20) + BUFFERED_BYTES


@every_dialect
@pytest.mark.parametrize("drip", [b": " + PIECE + b"\n", b"\n" * len(PIECE)], ids=["comments", "blank"])
def test_an_answer_that_is_too_long_is_final(drip: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 4 << 20)

    with (
        endless(begun(), drip, fast=True) as server,
        client_of(server) as client,
        pytest.raises(ModelFailed, match="sends an answer of more than 4 MiB"),
    ):
        client.query()

    assert server.requests == 1
    assert server.sent < (4 << 20) + BUFFERED_BYTES


@every_dialect
@pytest.mark.parametrize(
    ("line", "problem"),
    [(PIECE, "an event of more than 2 MiB"), (PIECE + b"\n\n", "an answer of more than 4 MiB")],
)
def test_a_packed_answer_is_measured_unpacked(
    line: bytes, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 4 << 20)
    monkeypatch.setattr(transport, "MAX_LINE_BYTES", 2 << 20)
    head = HEAD.removesuffix(b"\r\n") + b"content-encoding: gzip\r\n\r\n"

    with (
        endless(head + packed(b": " + line * 8), b"") as server,
        client_of(server) as client,
        pytest.raises(ModelFailed, match=problem),
    ):
        client.query()


@every_dialect
def test_a_packed_answer_is_read() -> None:
    head = HEAD.removesuffix(b"\r\n") + b"content-encoding: gzip\r\n\r\n"
    answer = packed(streamed(WHOLE[current().provider]))

    with endless(head + answer, b"") as server, client_of(server) as client:
        assert client.query().text == "Hi."


@every_dialect
def test_the_body_of_an_error_is_read_up_to_a_bound() -> None:
    with (
        endless(error(400), PIECE, fast=True) as server,
        client_of(server) as client,
        pytest.raises(ModelFailed, match="the model answered 400"),
    ):
        client.query()

    assert server.requests == 1
    assert server.sent < MAX_ERROR_BYTES + BUFFERED_BYTES


@every_dialect
def test_the_body_of_an_error_is_measured_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_ERROR_BYTES", 1000)
    body = packed(b'{"error": {"message": "' + PIECE + b'"}}')

    with (
        endless(error(400, "content-encoding: gzip\r\n") + body, b"") as server,
        client_of(server) as client,
        pytest.raises(ModelFailed, match="answered 400"),
    ):
        client.query()


@every_dialect
def test_a_document_that_is_nested_too_deep_is_no_answer() -> None:
    head = HEAD.replace(b"text/event-stream", b"application/json")
    deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

    with (
        endless(head + deep, b"") as server,
        client_of(server) as client,
        pytest.raises(ModelFailed, match="not the API of a model"),
    ):
        client.query()


def test_the_bounds_leave_room_for_the_longest_answers() -> None:
    tokens, event_bytes = 128_000, 400

    assert tokens * event_bytes < MAX_ANSWER_BYTES
    assert tokens * 16 < MAX_LINE_BYTES < MAX_ANSWER_BYTES
