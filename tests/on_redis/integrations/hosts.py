"""A host of a gateway with `--code`."""

from __future__ import annotations

import json
import os
import sys
import threading
from itertools import count
from pathlib import Path
from typing import Any

from fdstore.integrations.gateway.code.programs import CodeOptions, Programs
from fdstore.integrations.gateway.descriptors import Descriptors
from fdstore.integrations.gateway.lines import MessageWriter, read_lines
from fdstore.integrations.gateway.server_group import ServerGroup
from fdstore.integrations.gateway.stdio_relay import StdioRelay
from fdstore.integrations.gateway.upstream import UpstreamProcess
from tests.waiting import PATIENCE_S

UPSTREAM = (sys.executable, "-I", "-S", str(Path(__file__).parents[2] / "code_upstream.py"))


class Host:
    """A host of a gateway with `--code`: it writes messages, and reads what comes."""

    def __init__(self, url: str, options: CodeOptions, server: ServerGroup | None = None) -> None:
        self.descriptors = Descriptors(url, None, "triage", 8000, lambda _: None)
        self._server = server or UpstreamProcess(UPSTREAM)
        self.descriptors.start()
        theirs_in, ours = os.pipe()
        self._ours, theirs_out = os.pipe()
        self._stderr, theirs_err = os.pipe()
        self._fds = [theirs_in, theirs_err, self._ours, self._stderr]
        self._theirs_out = theirs_out
        self._relay = StdioRelay(
            self._server,
            self.descriptors,
            host_in=theirs_in,
            host_out=theirs_out,
            host_err=theirs_err,
            programs=Programs(options, self.descriptors),
        )
        self.code: int | None = None
        self._writer = MessageWriter(ours)
        self._lines = read_lines(self._ours)
        self._ids = count(1)
        self.notes: list[Any] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.code = self._relay.run()
        os.close(self._theirs_out)

    def write(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def send(self, method: str, **params: Any) -> int:
        id = next(self._ids)
        self.write({"id": id, "method": method, "params": params})
        return id

    def read(self) -> Any:
        return json.loads(next(self._lines))

    def answer_to(self, id: int) -> Any:
        """Return the result of a request; notifications that come before it are kept."""
        while "id" not in (message := self.read()):
            self.notes.append(message)
        assert message["id"] == id, message
        return message["result"]

    def begin(self, code: str, **meta: Any) -> int:
        more = {"_meta": meta} if meta else {}
        return self.send("tools/call", name="run_python", arguments={"code": code}, **more)

    def run(self, code: str) -> str:
        """Run code and return what the model sees of a program that succeeds."""
        result = self.answer_to(self.begin(code))
        assert not result["isError"], result
        return printed(result)

    def fails(self, code: str) -> str:
        result = self.answer_to(self.begin(code))
        assert result["isError"], result
        return printed(result)

    def list_tools(self) -> list[str]:
        names, cursor = [], {}
        while True:
            page = self.answer_to(self.send("tools/list", **cursor))
            names += [tool["name"] for tool in page["tools"]]
            if "nextCursor" not in page:
                return names
            cursor = {"cursor": page["nextCursor"]}

    def find(self, query: str) -> str:
        found = self.send("tools/call", name="find_tools", arguments={"query": query})
        return str(self.answer_to(found)["content"][0]["text"])

    def hang_up(self) -> None:
        """Close both sides at once, as a host that is killed."""
        self._writer.close(1)
        os.close(self._ours)
        self._fds.remove(self._ours)

    def leave(self) -> int | None:
        """Close standard input of the gateway, and return its exit code."""
        self._writer.close(1)
        self._thread.join(PATIENCE_S)
        return self.code

    def close(self) -> None:
        self.leave()
        assert not self._thread.is_alive()
        for fd in self._fds:
            os.close(fd)


def printed(result: Any) -> str:
    """Return the text of a result without its element."""
    text = str(result["content"][0]["text"])
    lines = text.splitlines()
    return "\n".join(lines[1:-1]) if lines[0].startswith("<python_result") else text
