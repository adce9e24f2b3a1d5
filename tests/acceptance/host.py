"""A host of a server that speaks JSON-RPC on its standard input and output."""

from __future__ import annotations

import json
from typing import Any

from tests.children import Child

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "host", "version": "1"},
}


class Host:
    """Sends requests, each with the next number, and reads the answers. `greets`: initializes the server."""

    def __init__(self, server: Child[bytes], *, greets: bool = True) -> None:
        self._server = server
        self._number = 0
        if greets:
            self.ask("initialize", **HELLO)
            self.write({"method": "notifications/initialized"})

    def write(self, message: dict[str, Any]) -> None:
        """Send a message."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._server.stdin.flush()

    def send(self, method: str, **params: Any) -> int:
        """Send a request, and return its number."""
        self._number += 1
        self.write({"id": self._number, "method": method, "params": params})
        return self._number

    def answer(self, number: int) -> Any:
        """Wait for an answer. Every line that comes meanwhile is a message."""
        assert self._server.stdout is not None
        while True:
            answer = json.loads(self._server.stdout.readline())
            if answer.get("id") == number:
                return answer

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request, and return its result."""
        return self.answer(self.send(method, **params))["result"]

    def call(self, tool: str, **arguments: object) -> str:
        """Call a tool, and return the first text of its result."""
        shown: str = self.ask("tools/call", name=tool, arguments=arguments)["content"][0]["text"]
        return shown

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.ask("tools/list")["tools"]]
