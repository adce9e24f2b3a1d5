"""A web service with agents: it streams their progress, and serves their descriptors by range.

POST /questions                     starts an agent, and returns the addresses below
GET  /processes/{process}/{fd}      the content; live while it is written; `Range: bytes=A-B` for a part
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anthropic
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import fdstore.aio
from fdstore.errors import NotFound, StreamBroken

processes: dict[str, fdstore.aio.Process] = {}
"""The processes of this service: no request reaches others of the store."""

running: set[asyncio.Task[None]] = set()


def measurements(sensor: str) -> str:
    """Return all measurements of a sensor, a line each: time, degrees."""
    return "".join(
        f"2026-11-{1 + hour // 24:02}T{hour % 24:02}:{minute:02} {sensor} "
        f"{18 + (hour + minute) % 7 + 60 * (hour == 400 and minute == 30)}\n"
        for hour in range(24 * 28)
        for minute in range(0, 60, 5)
    )


async def run_agent(process: fdstore.aio.Process, progress: fdstore.aio.StreamWriter, question: str) -> None:
    """Answer a question, and write what the agent does to a stream. If it fails, the stream breaks."""
    tools = fdstore.aio.Toolset(process, enabled=["read_fd", "search_fd"], python=[measurements])
    async with progress, anthropic.AsyncAnthropic() as client:
        agent = client.beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=4096,
            system=tools.instructions,
            tools=tools.runnable(),
            messages=[{"role": "user", "content": question}],
        )
        async for message in agent:
            for block in message.content:
                if block.type == "text":
                    await progress.write(f"{block.text}\n")
                if block.type == "tool_use":
                    await progress.write(f"{block.name} {block.input}\n")
            await progress.flush()


async def ask(request: Request) -> Response:
    process = await request.app.state.store.process()
    processes[process.id] = process
    progress = await process.open_stream(source="progress")
    task = asyncio.create_task(run_agent(process, progress, (await request.json())["question"]))
    running.add(task)  # asyncio itself keeps no reference
    task.add_done_callback(running.discard)
    address = f"/processes/{process.id}"
    return JSONResponse({"contents": address, "progress": f"{address}/{progress.fd}"}, 201)


async def follow(process: fdstore.aio.Process, fd: str) -> AsyncIterator[bytes]:
    """Return a content to its end. If it breaks off, the last line says why."""
    try:
        async for piece in process.follow_bytes(fd):
            yield piece
    except StreamBroken as error:
        yield f"\n{error}\n".encode()


async def content(request: Request) -> Response:
    process = processes.get(request.path_params["process"])
    if process is None:
        raise HTTPException(404)
    try:
        found = await process.stat(request.path_params["fd"])
    except NotFound as error:
        raise HTTPException(404, str(error)) from error
    part = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("range", ""))
    if not part:
        return StreamingResponse(follow(process, found.fd), media_type=found.media_type)
    first, last = int(part[1]), min(int(part[2]), found.bytes - 1)
    if first > last:
        raise HTTPException(416, headers={"Content-Range": f"bytes */{found.bytes}"})
    body = await process.read_bytes(found.fd, offset=first, length=last - first + 1)
    place = {"Content-Range": f"bytes {first}-{last}/{found.bytes}"}
    return Response(body, 206, headers=place, media_type=found.media_type)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with await fdstore.aio.connect() as store:
        app.state.store = store
        yield


app = Starlette(
    routes=[Route("/questions", ask, methods=["POST"]), Route("/processes/{process}/{fd}", content)],
    lifespan=lifespan,
)
