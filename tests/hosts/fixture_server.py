"""An MCP server by HTTP with what the official conformance suite calls: tools, prompts and resources by the
names that its scenarios expect. It prints its port.

It need not pass all scenarios: the same ones must pass and fail when the gateway stands before it.
"""

from __future__ import annotations

import asyncio
import base64
import socket
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.types import (
    AudioContent,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    JSONRPCMessage,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

server = MCPServer("fixtures")
FIRST_EVENT = "first_event"

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
        "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
    )
).decode()
SILENCE = base64.b64encode(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\0\0\0\0"
).decode()
IMAGE = ImageContent(type="image", data=PIXEL, mime_type="image/png")


def words(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def document(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri=uri, text=text, mime_type=mime_type)
    )


@server.tool(name="test_simple_text")
def simple_text() -> str:
    """Return a short text."""
    return "A short text."


@server.tool(name="test_image_content")
def image() -> list[ImageContent]:
    """Return a picture."""
    return [IMAGE]


@server.tool(name="test_audio_content")
def audio() -> list[AudioContent]:
    """Return a sound."""
    return [AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]


@server.tool(name="test_embedded_resource")
def embedded() -> list[EmbeddedResource]:
    """Return an embedded resource."""
    return [document("test://embedded", "An embedded text.")]


@server.tool(name="test_multiple_content_types")
def mixed() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Return blocks of three kinds."""
    return [words("A text before a picture."), IMAGE, document("test://mixed", "{}", "application/json")]


@server.tool(name="test_error_handling")
def failing() -> str:
    """Fail."""
    raise ValueError("This tool always fails")


@server.tool(name="test_tool_with_progress")
async def progress(ctx: Context) -> str:
    """Report progress in three steps."""
    for done in (0, 50, 100):
        await ctx.report_progress(progress=done, total=100, message=f"{done} of 100")
        await asyncio.sleep(0.02)
    return "All steps are done."


@server.tool(name="test_tool_with_logging")
async def logging(ctx: Context) -> str:
    """Send three log messages."""
    for part in ("begin", "middle", "end"):
        await ctx.info(part)
        await asyncio.sleep(0.02)
    return "Three messages were sent."


@server.tool(name="test_sampling")
async def sampling(prompt: str, ctx: Context) -> str:
    """Ask the host's model."""
    question = SamplingMessage(role="user", content=words(prompt))
    answer = await ctx.session.create_message(
        messages=[question], max_tokens=100, related_request_id=ctx.request_id
    )
    return f"The model said: {answer.content.text}"


class Reply(BaseModel):
    """The text that the user types."""

    response: str


@server.tool(name="test_elicitation")
async def elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    answer = await ctx.elicit(message=message, schema=Reply)
    return f"The user chose {answer.action}."


@server.tool(name="test_reconnection")
async def reconnection(ctx: Context) -> str:
    """Close the stream after its first event and before the answer, which comes on the next one."""
    request = ctx.request_context.request
    assert request is not None
    await request.scope[FIRST_EVENT].wait()
    await ctx.close_sse_stream()
    await asyncio.sleep(0.1)
    return "The answer came on another stream."


def form(question: str, field: str) -> ElicitRequest:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field: {"type": "string"}},
        "required": [field],
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=question, requested_schema=schema))


def sample(question: str) -> CreateMessageRequest:
    asked = SamplingMessage(role="user", content=words(question))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[asked], max_tokens=50))


@server.tool(name="test_input_required_result_elicitation")
async def needs_user(ctx: Context) -> str | InputRequiredResult:
    """Need the user's name before the answer."""
    if "user_name" in (ctx.input_responses or {}):
        return "The name is known now."
    return InputRequiredResult(input_requests={"user_name": form("What is your name?", "name")})


@server.tool(name="test_input_required_result_sampling")
async def needs_model(ctx: Context) -> str | InputRequiredResult:
    """Need the host's model before the answer."""
    if "capital_question" in (ctx.input_responses or {}):
        return "The model has answered."
    return InputRequiredResult(input_requests={"capital_question": sample("The capital of France?")})


@server.tool(name="test_input_required_result_list_roots")
async def needs_roots(ctx: Context) -> str | InputRequiredResult:
    """Need the host's roots before the answer."""
    if "client_roots" in (ctx.input_responses or {}):
        return "The roots are known now."
    return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})


@server.tool(name="test_input_required_result_request_state")
async def keeps_state(ctx: Context) -> str | InputRequiredResult:
    """Need a confirmation, and the state that was sent along."""
    if "confirm" in (ctx.input_responses or {}) and ctx.request_state == "remembered":
        return "state-ok"
    return InputRequiredResult(
        input_requests={"confirm": form("Is that right?", "ok")}, request_state="remembered"
    )


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    return "A text that never changes."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return base64.b64decode(PIXEL)


@server.resource("test://template/{id}/data", mime_type="application/json")
def templated(id: str) -> str:
    return f'{{"id": "{id}"}}'


@server.prompt(name="test_simple_prompt")
def simple_prompt() -> str:
    """Return a prompt."""
    return "A prompt without arguments."


@server.prompt(name="test_prompt_with_arguments")
def prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Return a prompt of two arguments."""
    return f"A prompt with {arg1!r} and {arg2!r}: {arg1}, {arg2}."


@server.prompt(name="test_prompt_with_embedded_resource")
def prompt_with_resource(resourceUri: str) -> list[UserMessage]:
    """Return a prompt with an embedded resource."""
    return [UserMessage(content=document(resourceUri, "An embedded text.")), UserMessage("Look at it.")]


@server.prompt(name="test_prompt_with_image")
def prompt_with_image() -> list[UserMessage]:
    """Return a prompt with a picture."""
    return [UserMessage(content=IMAGE), UserMessage("Look at it.")]


@server.tool(name="long_log")
def long_log(lines: int) -> str:
    """Return a long log."""
    return "".join(f"{number:06} a line of the log\n" for number in range(1, lines + 1))


@server.completion()
async def complete(*_: object) -> Completion:
    return Completion(values=[], total=0, has_more=False)


class Events(EventStore):
    """The events of all streams, for clients that continue a stream."""

    def __init__(self) -> None:
        self._events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        last = int(last_event_id)
        stream = self._events[last - 1][0]
        for number, (of_stream, message) in enumerate(self._events[last:], last + 1):
            if of_stream == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def telling_of_first_event(app: ASGIApp) -> ASGIApp:
    """Return `app` so that a tool can wait until the first event of its stream has gone out.

    The server drops that event if the stream is closed before.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        first_event = scope[FIRST_EVENT] = asyncio.Event()

        async def tell(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body":
                first_event.set()

        await app(scope, receive, tell)

    return serve


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        app = server.streamable_http_app(event_store=Events(), retry_interval=100)
        uvicorn.Server(uvicorn.Config(telling_of_first_event(app), log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()
