"""A scripted Gemini API on loopback, for Gemini CLI: as `fdstore.testing.ScriptedModel` for the Messages API.

A script is a list of parts, one for each answer. The requests are recorded, so that a test asserts what the
model would have seen.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Part = dict[str, Any]


def say(text: str) -> Part:
    return {"text": text}


def call(name: str, **arguments: Any) -> Part:
    return {"functionCall": {"name": name, "args": arguments}}


class ScriptedGemini:
    """The server, listening from construction until the end of its block."""

    def __init__(self, *script: Part) -> None:
        self.requests: list[dict[str, Any]] = []
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments: Any) -> None:
                """Be silent."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                requests.append(body)
                done = len(results_in(body))
                part = script[done] if done < len(script) else say("done")
                content = {"role": "model", "parts": [part]}
                usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
                answer = {
                    "candidates": [{"content": content, "finishReason": "STOP"}],
                    "usageMetadata": usage,
                }
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(f"data: {json.dumps(answer)}\r\n\r\n".encode())

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def results(self) -> list[str]:
        """The tools' results as the model sees them, oldest first."""
        return results_in(self.requests[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def results_in(body: dict[str, Any]) -> list[str]:
    found = []
    for content in body.get("contents", ()):
        for part in content["parts"]:
            if "functionResponse" in part:
                response = part["functionResponse"]["response"]
                found.append(str(response.get("output") or response.get("error") or response))
    return found
