"""A client that dies at a chosen moment: `python -m tests.chaos.victim URL FOLDER`, with one order per line
on standard input. The folder has a `reader.toml` and receives exports.

    create 3 before       die before sending the 3rd request
    create 3 torn         die when half of it was sent
    create 3 short        die when all but its last command was sent
    create 3 after        die after the reply arrived, before the caller sees it

For each order a fork of this process does the work on the process `t`; it prints `died`, or `lived` if the
work has fewer requests.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fdstore.client import Process, Store
from fdstore.results.tool_outcome import ToolResult
from fdstore.toolset._sync import Toolset
from fdstore.wire._sync.runner import Runner
from tests.chaos.fatal import FatalRunner, Send
from tests.chaos.proxy import count_complete

LONG = "".join(f"line {number}\n" for number in range(150_000))
"""More than a few requests carry."""

FILE_CALL = {"fd": "fd:1", "file_path": "out.txt", "mode": "append"}


def append(proc: Process, folder: str) -> ToolResult:
    """Append a text to a file, as one tool call of a model."""
    return tool(proc, folder, "fd_to_file", **FILE_CALL)


def tool(proc: Process, folder: str, name: str, **arguments: Any) -> ToolResult:
    """Run a tool call of an agent."""
    tools = Toolset(
        proc,
        enabled=["read_fd", "write_fd", "fd_to_file", "spawn", "wait"],
        programs={"reader": Path(folder, "reader.toml")},
        export_root=folder,
    )
    result = tools.call(name, arguments, call_id="toolu_1")
    assert not result.is_error, result.content
    return result


WORK: dict[str, Callable[[Process, str], object]] = {
    "create": lambda proc, _: proc.create("short"),
    "create-long": lambda proc, _: proc.create(LONG),
    "ingest": lambda proc, _: proc.ingest(io.BytesIO(LONG.encode()), "a file"),
    "extract": lambda proc, _: proc.extract("fd:1#L2-3"),
    "extract-long": lambda proc, _: proc.extract("fd:2"),
    "child": lambda proc, _: proc.child(share=["fd:1"]),
    "fork": lambda proc, _: proc.fork(),
    "close": lambda proc, _: proc.close("fd:1"),
    "end": lambda proc, _: proc.end(),
    "open": lambda proc, folder: tool(proc, folder, "write_fd", data="", eof=False),
    "append": lambda proc, folder: tool(proc, folder, "write_fd", fd="fd:3", data="more\n" * 2000),
    "append-little": lambda proc, folder: tool(proc, folder, "write_fd", fd="fd:3", data="more\n"),
    "eof": lambda proc, folder: tool(proc, folder, "write_fd", fd="fd:3", data="", eof=True),
    "spawn": lambda proc, folder: tool(
        proc,
        folder,
        "spawn",
        program_name="reader",
        query="read it",
        additional_preload_fds=["fd:1"],
        background=True,
    ),
    "put": lambda proc, _: proc.put("plan", "better"),
    "put-long": lambda proc, _: proc.put("plan", LONG),
    "rename": lambda proc, _: proc.rename("plan", "old plan"),
    "root": lambda proc, _: proc.store.process("another"),
}


MOMENTS: dict[str, Callable[[bytes], int]] = {
    "before": lambda request: 0,
    "torn": lambda request: len(request) // 2,
    "short": lambda request: request.rindex(b"\r\n*") + 2 if b"\r\n*" in request else 0,
    "after": len,
}
"""The bytes of a request that are sent before its sender dies."""


class DyingRunner(FatalRunner):
    """A runner that kills this process at its n-th request."""

    def __init__(self, url: str, number: int, moment: str) -> None:
        super().__init__(url, number)
        self._moment = moment

    def inject_fault(self, link: Any, send: Send, request: bytes) -> None:
        send(request[: MOMENTS[self._moment](request)])
        if self._moment == "after":
            link.receive([], count_complete(request)[0])
        os.kill(os.getpid(), signal.SIGKILL)


def main(url: str, folder: str) -> None:
    works = {**WORK, "append-file": append}
    for order in sys.stdin:
        work, number, moment = order.split()
        copy = os.fork()
        if copy == 0:
            with Store(Runner(url), "fdstore", url) as store:
                proc = store.process("t")
            with Store(DyingRunner(url, int(number), moment), "fdstore", url) as dying:
                works[work](Process(dying, proc.handle), folder)
            os._exit(0)
        _, status = os.waitpid(copy, 0)
        died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print("died" if died else "lived" if status == 0 else f"failed with {status}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
