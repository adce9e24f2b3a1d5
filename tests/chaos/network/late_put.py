"""A client that puts `name:k` twice: `python -m tests.chaos.network.late_put URL CLIENT`, with the blocking
or the `aio` client.

    ready            printed when it is connected
    (a line)         puts `first`, and prints the type of the error
    (a line)         puts `second`, and prints `stored`
"""

from __future__ import annotations

import asyncio
import sys

import fdstore
import fdstore.aio
from fdstore.errors import FDStoreError
from tests.chaos.network import network_times as network_times


def say_and_wait(word: str) -> None:
    print(word, flush=True)
    sys.stdin.readline()


def put_twice(url: str) -> None:
    with fdstore.connect(url) as store:
        process = store.process("t")
        say_and_wait("ready")
        try:
            process.put("k", "first")
        except FDStoreError as error:
            say_and_wait(error.type)
        process.put("k", "second")
        say_and_wait("stored")


async def put_twice_async(url: str) -> None:
    async with await fdstore.aio.connect(url) as store:
        process = await store.process("t")
        say_and_wait("ready")
        try:
            await process.put("k", "first")
        except FDStoreError as error:
            say_and_wait(error.type)
        await process.put("k", "second")
        say_and_wait("stored")


if __name__ == "__main__":
    url, client = sys.argv[1:]
    if client == "aio":
        asyncio.run(put_twice_async(url))
    else:
        put_twice(url)
