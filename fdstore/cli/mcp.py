"""The verb mcp: serve the descriptors of a process to a host of MCP."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import Session, verb
from fdstore.errors import InvalidArgument
from fdstore.optional_packages import frozen_imports, require

if TYPE_CHECKING:
    from fdstore.integrations.mcp.access import Permission
    from fdstore.integrations.mcp.toolsets import ToolOptions

PACKAGES = ("mcp",)


@verb
@click.option(
    "--process",
    metavar="NAME",
    help="The process to serve; created if missing. [default: the name of this directory]",
)
@click.option(
    "--allow",
    metavar="LIST",
    default="read,write",
    show_default=True,
    help="What callers may do, of read, write, pipe, export.",
)
@click.option("--export-root", metavar="DIR", help="With export: directory below which files are written.")
@click.option("--put-root", metavar="DIR", help="Directory below which put_fd may store files.")
@click.option(
    *("--allow-command", "commands"),
    metavar="NAME",
    multiple=True,
    help="With pipe: a program that may run on the workers; repeatable.",
)
def mcp(
    session: Session,
    process: str | None,
    allow: str,
    export_root: str | None,
    put_root: str | None,
    commands: tuple[str, ...],
) -> None:
    """Serve the descriptors of a process to a host of MCP (Model Context Protocol), on standard input and
    output.

    The model of the host gets the tools read_fd, search_fd and list_fds, with write also put_fd, write_fd and
    close_fd, with export fd_to_file, with pipe also pipe, wait and kill.

    \b
    claude mcp add fd -- fdstore mcp --process logs
    journalctl | fdstore put logs -
    """
    require(PACKAGES, "mcp")
    with frozen_imports():
        from fdstore.integrations.mcp.access import access_to, parse_permissions
        from fdstore.integrations.mcp.server import build_server
        from fdstore.integrations.mcp.stdio import serve_stdio
        from fdstore.integrations.mcp.toolsets import Toolsets
        from fdstore.integrations.process_name import process_name_of
    output.show_logs()
    try:
        permissions = parse_permissions(allow)
        access = access_to(process or process_name_of(os.getcwd()), permissions)
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    options = _options(permissions, export_root, put_root, commands)

    async def serve() -> None:
        from fdstore.client._async.store import connect

        toolsets = Toolsets(lambda: connect(session.url, session.prefix), access, options)
        await serve_stdio(build_server(toolsets))

    asyncio.run(serve())


def _options(
    permissions: frozenset[Permission],
    export_root: str | None,
    put_root: str | None,
    commands: tuple[str, ...],
) -> ToolOptions:
    """Return the options of the tools. Raises `UsageError` for one without its permission, or without what
    its permission needs."""
    from fdstore.integrations.mcp.toolsets import ToolOptions

    for permission, option, value in (
        ("export", "--export-root", export_root),
        ("pipe", "--allow-command", commands),
    ):
        if (permission in permissions) != bool(value):
            raise click.UsageError(f"--allow {permission} and {option} need each other")
    if put_root and "write" not in permissions:
        raise click.UsageError("--put-root needs --allow write")
    return ToolOptions(export_root=export_root, put_root=put_root, commands=commands)
