"""A scripted Responses API on loopback, for Codex: it asks for calls of tools, and records the requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.hosts.scripted_server import Json, scripted_server

USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


class Asked(NamedTuple):
    """A call that the model asks for: the namespace of its server, the tool, and the arguments."""

    namespace: str
    name: str
    arguments: Json


class ScriptedResponses(NamedTuple):
    """The URL of the API, and the bodies of all requests so far."""

    base_url: str
    requests: list[Json]

    @property
    def outputs(self) -> list[str]:
        """The results of the calls as the model last saw them: each the text of its blocks."""
        return [_text(item["output"]) for item in _outputs(self.requests[-1])]

    def tools(self, namespace: str) -> list[str]:
        """The tools of a namespace in the first request."""
        offered = self.requests[0].get("tools", [])
        [found] = [tool for tool in offered if tool.get("name") == namespace] or [{"tools": []}]
        return [tool["name"] for tool in found["tools"]]


def _outputs(body: Json) -> list[Json]:
    return [item for item in body["input"] if item.get("type") == "function_call_output"]


def _text(output: Any) -> str:
    return output if isinstance(output, str) else "".join(block.get("text", "") for block in output)


@contextmanager
def scripted_responses(calls: list[Asked]) -> Iterator[ScriptedResponses]:
    """Run an API whose model makes these calls, one in each turn, and then says "Done."."""

    def respond(body: Json) -> str:
        events = _events(calls, len(_outputs(body)))
        shown = [(kind, json.dumps({"type": kind, **fields})) for kind, fields in events]
        return "".join(f"event: {kind}\ndata: {event}\n\n" for kind, event in shown)

    with scripted_server(respond) as (url, requests):
        yield ScriptedResponses(f"{url}/v1", requests)


def _events(calls: list[Asked], done: int) -> list[tuple[str, Json]]:
    if done < len(calls):
        call = calls[done]
        item: Json = {"type": "function_call", "id": f"fc_{done}", "call_id": f"call_{done}"}
        item |= {"namespace": call.namespace, "name": call.name, "arguments": json.dumps(call.arguments)}
    else:
        said = [{"type": "output_text", "text": "Done."}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": said}
    return [
        ("response.created", {"response": {"id": "resp_1"}}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": {"id": "resp_1", "usage": USAGE}}),
    ]
