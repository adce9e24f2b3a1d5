"""Hosts of a gateway, on pipes."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from fdstore.hosts.gateway.code.programs import Programs
from fdstore.hosts.gateway.descriptors import Descriptors
from fdstore.hosts.gateway.lines import MessageWriter, read_lines
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.relay import Relay
from fdstore.hosts.gateway.server_group import ServerGroup
from fdstore.hosts.gateway.upstream import UpstreamProcess
from fdstore.hosts.project import Project
from tests.waiting import PATIENCE_S

PROJECT = Project(process="triage")
UPSTREAM = (sys.executable, "-I", "-S", str(Path(__file__).parents[2] / "code_upstream.py"))


class PipedHost:
    """A host of a gateway: it writes messages, and reads what comes.

    make_relay   returns the gateway's relay, given the file descriptors `host_in`, `host_out` and `host_err`
    """

    def __init__(self, make_relay: Callable[..., Any]) -> None:
        theirs_in, ours = os.pipe()
        self._ours, theirs_out = os.pipe()
        self.stderr, theirs_err = os.pipe()
        self._fds = [theirs_in, theirs_err, self._ours, self.stderr]
        self._theirs_out = theirs_out
        self._relay = make_relay(host_in=theirs_in, host_out=theirs_out, host_err=theirs_err)
        self.code: int | None = None
        self._writer = MessageWriter(ours)
        self.lines = read_lines(self._ours)
        self._ids = count(1)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.code = self._relay.run()
        os.close(self._theirs_out)

    def write(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write_batch(self, *messages: dict[str, Any]) -> None:
        self._writer.write(json.dumps([{"jsonrpc": "2.0", **each} for each in messages]).encode() + b"\n")

    def tell(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.write({"method": method, "params": params})

    def send(self, method: str, id: Any = None, **params: Any) -> Any:
        """Send a request, and return its id."""
        id = next(self._ids) if id is None else id
        self.write({"id": id, "method": method, "params": params})
        return id

    def see_tools(self) -> None:
        """Ask for the tools, so that long results become descriptors."""
        self.send("tools/list", id="tools")
        while self.read().get("id") != "tools":
            pass

    def begin(self, tool: str, **arguments: Any) -> Any:
        return self.send("tools/call", name=tool, arguments=arguments)

    def read(self) -> Any:
        return json.loads(next(self.lines), strict=False)

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return the result."""
        self.begin(tool, **arguments)
        return self.read()["result"]

    def text(self, tool: str, **arguments: Any) -> str:
        [block] = self.call(tool, **arguments)["content"]
        return str(block["text"])

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
        while self._fds:
            os.close(self._fds.pop())


class CodeHost(PipedHost):
    """A host of a gateway with `--code`, before the servers of a `group` or before one."""

    def __init__(
        self,
        url: str,
        options: GatewayOptions,
        server: ServerGroup | None = None,
        group: Sequence[str] | None = None,
    ) -> None:
        descriptors = Descriptors(options, PROJECT, lambda _: None, url=url)
        descriptors.start()
        programs = Programs(descriptors, group)
        self.notes: list[Any] = []
        super().__init__(
            lambda **fds: Relay(server or UpstreamProcess(UPSTREAM), descriptors, programs=programs, **fds)
        )

    def answer_to(self, id: int) -> Any:
        """Return the result of a request; notifications that come before it are kept."""
        while "id" not in (message := self.read()):
            self.notes.append(message)
        assert message["id"] == id, message
        return message["result"]

    def begin_code(self, code: str, **meta: Any) -> int:
        more = {"_meta": meta} if meta else {}
        return int(self.send("tools/call", name="run_python", arguments={"code": code}, **more))

    def run(self, code: str) -> str:
        """Run code and return what the model sees of a program that succeeds."""
        result = self.answer_to(self.begin_code(code))
        assert not result["isError"], result
        return printed(result)

    def fails(self, code: str) -> str:
        result = self.answer_to(self.begin_code(code))
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


def printed(result: Any) -> str:
    """Return the text of a result without its element."""
    text = str(result["content"][0]["text"])
    lines = text.splitlines()
    return "\n".join(lines[1:-1]) if lines[0].startswith("<python_result") else text
