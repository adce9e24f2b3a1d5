"""A scripted Gemini API on loopback, for Gemini CLI: as `fdstore.testing.ScriptedModel` for the Messages API.

A script is a list of parts, one for each answer. The requests are recorded, so that a test asserts what the
model would have seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.hosts.scripted_server import Json, scripted_server

Part = dict[str, Any]


def say(text: str) -> Part:
    return {"text": text}


def call(name: str, **arguments: Any) -> Part:
    return {"functionCall": {"name": name, "args": arguments}}


@contextmanager
def scripted_gemini(*script: Part) -> Iterator[tuple[str, list[Json]]]:
    """Run an API whose model answers so, and then "done". Yield its URL, and the requests so far."""

    def respond(body: Json) -> str:
        done = len(results_in(body))
        part = script[done] if done < len(script) else say("done")
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        answer = {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}
        return f"data: {json.dumps(answer)}\r\n\r\n"

    with scripted_server(respond) as served:
        yield served


def results_in(body: Json) -> list[str]:
    """Return the tools' results as the model sees them, oldest first."""
    found = []
    for content in body.get("contents", ()):
        for part in content["parts"]:
            if "functionResponse" in part:
                response = part["functionResponse"]["response"]
                found.append(str(response.get("output") or response.get("error") or response))
    return found
