"""The connections of a client of a model: which answers they take, and how much of one."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Iterator

import httpx2
import pytest

from fdstore.agents.loop.models.transport import MAX_ANSWER_BYTES, ModelTransport, Streams, WrongServer
from tests.recording_server import recording

PIECE = b" " * (1 << 20)


def endless() -> Iterator[bytes]:
    while True:
        yield b"%x\r\n%b\r\n" % (len(PIECE), PIECE)


def packed() -> Iterator[bytes]:
    bomb = gzip.compress(bytes(4 * MAX_ANSWER_BYTES), compresslevel=1)
    yield b"%x\r\n%b\r\n0\r\n\r\n" % (len(bomb), bomb)


@pytest.mark.thorough("many megabytes")
@pytest.mark.parametrize(("more", "body"), [("", endless), ("Content-Encoding: gzip\r\n", packed)])
async def test_a_document_without_an_end_is_no_answer(more: str, body: Callable[[], Iterator[bytes]]) -> None:
    sent = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{more}Transfer-Encoding: chunked\r\n\r\n"
        )
        writer.write(head.encode())
        try:
            for piece in body():
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with httpx2.AsyncClient(transport=ModelTransport("base_url", lambda body: [body])) as client:
            with pytest.raises(WrongServer, match="not the API of a model; check base_url"):
                await client.get(f"http://127.0.0.1:{port}/v1/messages")

    assert sent < MAX_ANSWER_BYTES + 32 * len(PIECE)


LINES = Streams(("application/x-ndjson",), lambda event: json.dumps(event).encode() + b"\n")


@pytest.mark.parametrize(
    ("kind", "read"),
    [("application/x-ndjson", '{"n": 1}'), ("application/json", '{"n": 1}\n'), ("text/event-stream", None)],
)
async def test_an_api_says_how_its_events_are_sent(kind: str, read: str | None) -> None:
    with recording(200, {"content-type": kind}, b'{"n": 1}') as server:
        transport = ModelTransport("base_url", lambda body: [body], LINES)
        async with httpx2.AsyncClient(transport=transport) as client:
            if read is None:
                with pytest.raises(WrongServer, match="200 with text/event-stream"):
                    await client.get(server.url)
            else:
                assert (await client.get(server.url)).text == read
