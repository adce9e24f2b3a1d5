"""The verb gateway: stand between an MCP host and any MCP server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.interrupts import as_interrupts
from fdstore.cli.session import Session, verb

if TYPE_CHECKING:
    from fdstore.integrations.gateway.descriptors import Descriptors


@verb
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("--process", metavar="NAME", help="Process of the descriptors. [default: the directory's name]")
@click.option(
    "--max-direct-output-chars",
    "limit",
    metavar="N",
    type=click.IntRange(1),
    default=8000,
    help="Longer texts become descriptors. [default: 8000]",
)
def gateway(session: Session, command: tuple[str, ...], process: str | None, limit: int) -> None:
    """Run an MCP server, and store its long results as descriptors.

    Put the words `fdstore gateway --` before the command of any server in the configuration of a host. All
    messages pass byte for byte, except that a long text in a tool's result becomes a descriptor, and that the
    host also sees the tools read_fd, search_fd and list_fds (named fdstore_read_fd, ... if the server has
    tools of these names). {{fd:3}} in the arguments of any tool stands for the stored content.

    If the store cannot be reached, everything passes unchanged. The exit code is the server's.

    \b
    fdstore gateway -- npx -y @modelcontextprotocol/server-everything
    """
    from fdstore.integrations.gateway.descriptors import Descriptors

    if not command:
        raise click.UsageError("name the command of a server after --, as `fdstore gateway -- COMMAND`")
    descriptors = Descriptors(session.url, session.prefix, process or directory_process(), limit, _say)
    with as_interrupts():
        code = _relay(command, descriptors)
    click.get_current_context().exit(code)


def _relay(command: tuple[str, ...], descriptors: Descriptors) -> int:
    from fdstore.integrations.gateway.stdio_relay import StdioRelay
    from fdstore.integrations.gateway.upstream import ServerProcess

    server = ServerProcess(command)
    descriptors.start()
    return StdioRelay(server, descriptors).run()


def directory_process() -> str:
    """Return the name of the current directory as the name of a process."""
    name = re.sub(r"[^a-z0-9_-]+", "-", Path.cwd().name.lower()).strip("-_")
    return name[:48] or "gateway"


def _say(text: str) -> None:
    output.say(f"fdstore gateway: {text}")
