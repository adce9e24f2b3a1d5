"""Send the requests of a program's asks with the SDK alone, 50 at a time, and print its processor time.

python -m fdstore.bench.sdk_asks BASE_URL PARTS PAGES
"""

from __future__ import annotations

import asyncio
import sys
import time

import anthropic

from fdstore.bench.programs import parts_of, text_of
from fdstore.testing.server import API_KEY

AT_ONCE = 50
WARM = 4


async def spend(base_url: str, parts: int, pages: int) -> float:
    """Return the processor time of the requests, in seconds, after a few to warm up."""
    found = parts_of(text_of(parts, pages), pages)
    slots = asyncio.Semaphore(AT_ONCE)
    async with anthropic.AsyncAnthropic(api_key=API_KEY, base_url=base_url, max_retries=0) as client:

        async def ask(number: int) -> None:
            blocks = [f"Text 1:\n{found[number]}", f"Which dates occur? (part {number})"]
            async with slots:
                stream = await client.messages.create(
                    model="any",
                    max_tokens=4096,
                    messages=[
                        {"role": "user", "content": [{"type": "text", "text": each} for each in blocks]}
                    ],
                    stream=True,
                )
                async with stream:
                    async for _ in stream:
                        pass

        await asyncio.gather(*map(ask, range(WARM)))
        start = time.process_time()
        await asyncio.gather(*map(ask, range(parts)))
        return time.process_time() - start


if __name__ == "__main__":
    print(asyncio.run(spend(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
