"""The verb mcp: serve the descriptors of a process to an MCP host."""

from __future__ import annotations

import asyncio
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Literal

import click

from fdstore.cli import output
from fdstore.cli.interrupts import as_interrupts
from fdstore.cli.session import CliSession, as_usage_errors, verb
from fdstore.cli.struct_options import struct_options
from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.setup.log_options import log_options
from fdstore.setup.optional_packages import frozen_imports, require

if TYPE_CHECKING:
    from fdstore.client._async.store import Connector, Store
    from fdstore.hosts.mcp.toolsets import Toolsets
    from fdstore.store.tokens import Permission

THREADS = 32
"""Threads for calls that may take long: several times as many as run programs."""


@verb
@struct_options(GatewayOptions, "process")
@click.option(
    "--allow",
    metavar="LIST",
    multiple=True,
    default=["read,write"],
    show_default="read,write",
    help="What callers may do, of read, write, pipe, export, python, answer; repeatable.",
)
@click.option("--export-root", metavar="DIR", help="With export: directory below which files are written.")
@click.option("--put-root", metavar="DIR", help="Directory below which put_fd may store files.")
@click.option(
    *("--allow-command", "commands"),
    metavar="NAME",
    multiple=True,
    help="With pipe: a program that may run on the workers; repeatable.",
)
@struct_options(GatewayOptions, "max_read_chars")
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Serve streamable HTTP, at /mcp. Beyond this machine only with --require-token.",
)
@click.option(
    "--require-token", is_flag=True, help="With --http: callers need a token; it names the process."
)
@click.option(
    *("--allow-host", "hosts"),
    metavar="NAME",
    multiple=True,
    help="With --http: a name by which clients call this host; repeatable.",
)
@click.option(
    "--hook",
    type=click.Choice(["claude"]),
    help="Also serve the hook of the plugin of a coding host; see `fdstore claude-plugin`.",
)
@log_options("warning")
def mcp(
    session: CliSession,
    process: str | None,
    allow: tuple[str, ...],
    export_root: str | None,
    put_root: str | None,
    commands: tuple[str, ...],
    max_read_chars: int,
    http: str | None,
    require_token: bool,
    hosts: tuple[str, ...],
    hook: str | None,
    log_level: str,
    log_format: Literal["text", "json"],
) -> None:
    """Serve the descriptors of a process to an MCP host (Model Context Protocol), on standard input and
    output.

    The model of the host gets the tools that only read, such as read_fd and search_fd, with write also those
    that store, such as put_fd, with export fd_to_file, with pipe also pipe, wait and kill, with python
    run_python: code of the model over all texts of the process, which needs the extra [python]. With answer
    the person at a host that shows forms answers the questions of agents of the process's tree; its model
    sees none of them.

    With --http any number of hosts use one server. Those on other machines need tokens (`fdstore token`); put
    a proxy with TLS before it.

    \b
    claude mcp add fd -- fdstore mcp --process logs
    fdstore mcp --process logs --http 127.0.0.1:8000
    fdstore mcp --http 0.0.0.0:8000 --require-token --allow-host fd.example.org
    """
    require(("mcp",), "mcp")
    session.check_url()  # a call is too late to say so
    address = _address(http, process, require_token=require_token, hosts=hosts)
    if hook and address:
        raise click.UsageError("--hook is for a server that the host starts itself, without --http")
    if sys.stdin is None and not address:
        raise click.UsageError("standard input is closed: the host writes its messages there")
    with frozen_imports():
        from fdstore.hosts.mcp.access import access_to, parse_permissions
        from fdstore.hosts.mcp.server import build_server
        from fdstore.hosts.mcp.stdio import serve_stdio
        from fdstore.hosts.mcp.toolsets import ToolOptions, Toolsets
        from fdstore.hosts.project import current_project, session_name
        from fdstore.results.config import FDConfig
        from fdstore.setup import settings
    output.show_logs(log_level, log_format)
    with as_usage_errors():
        permissions = parse_permissions(",".join(allow))
        if "python" in permissions:
            from fdstore.programs.interpreter import pool

            require((pool.PACKAGE,), pool.EXTRA)
        project = current_project()
        access = access_to(process or project.process, permissions)
    limit = project.config.direct_chars
    config = FDConfig(
        max_read_chars=max_read_chars,
        max_direct_output_chars=limit,
        json_pretty_print=project.config.json_pretty_print,
    )
    _check_permissions(permissions, export_root, put_root, commands)
    options = ToolOptions(
        config=config,
        export_root=export_root,
        put_root=put_root,
        commands=commands,
        meter=session_name("mcp"),
    )

    @cache
    def connector() -> Connector:
        from fdstore.client._async.store import Connector

        return Connector(session.url, session.prefix, patience=settings.HOST_PATIENCE_S)

    async def serve() -> None:
        # programs each take a thread while they run, and others must not wait for them
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "fdstore-mcp"))
        answered = asyncio.Event()

        async def connect() -> Store:
            await answered.wait()
            return await connector().connect()

        toolsets = Toolsets(connect, access, options)
        if address is None:
            server = build_server(toolsets)
            if hook:
                from fdstore.hosts.hooks.host_tool import guide, hook_tool

                tool = hook_tool(toolsets.toolset, limit, settings.read().claude_dir)
                server = build_server(toolsets, host_tools=[tool])
                server.instructions = f"{server.instructions}\n{guide(limit)}"
            # its thread that reads standard input would delay the end until the next line
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            await serve_stdio(server, answered)
        else:
            answered.set()
            await _serve_http(toolsets, address, hosts, require_token=require_token)

    with as_interrupts() if address else nullcontext():
        asyncio.run(serve())


def _address(
    http: str | None, process: str | None, *, require_token: bool, hosts: tuple[str, ...]
) -> tuple[str, int] | None:
    """Return host and port of `--http`. Raises `UsageError` for options that do not fit together."""
    if http is None:
        if require_token or hosts:
            raise click.UsageError("--require-token and --allow-host need --http")
        return None
    from fdstore.http.address import allowed_names, is_loopback, parse_address

    problems = []
    try:
        host, port = parse_address(http)
    except InvalidArgument as error:
        raise click.UsageError(error.problem) from error
    if require_token and process is not None:
        raise click.UsageError("with --require-token the token names the process; leave --process out")
    if not (require_token or is_loopback(host)):
        problems.append(f"{host} can be reached from other machines, so --require-token is needed")
    try:
        allowed_names(host, hosts)
    except InvalidArgument as error:
        problems.append(error.problem)
    if problems:
        raise click.UsageError("; ".join(problems))
    return host, port


async def _serve_http(
    toolsets: Toolsets, address: tuple[str, int], hosts: tuple[str, ...], *, require_token: bool
) -> None:
    from fdstore.hosts.mcp.bearer import StoredTokens
    from fdstore.hosts.mcp.http import make_app, url_of
    from fdstore.hosts.mcp.server import build_server
    from fdstore.http.address import allowed_names, listen
    from fdstore.http.server import HttpServer

    tokens = StoredTokens(toolsets) if require_token else None
    server = build_server(toolsets, find_access=None if tokens is None else tokens.access)
    http = HttpServer(make_app(server, address[0], hosts, tokens), toolsets.stopping)
    served = "processes of tokens" if require_token else toolsets.default.process
    with listen(*address) as listening:
        output.say(f"fdstore: {served} at {url_of(listening, allowed_names(address[0], hosts))}")
        await http.serve(sockets=[listening])


def _check_permissions(
    permissions: frozenset[Permission],
    export_root: str | None,
    put_root: str | None,
    commands: tuple[str, ...],
) -> None:
    """Raise `UsageError` for an option without its permission, or without what its permission needs."""
    for permission, option, value in (
        ("export", "--export-root", export_root),
        ("pipe", "--allow-command", commands),
    ):
        if (permission in permissions) != bool(value):
            raise click.UsageError(f"--allow {permission} and {option} need each other")
    if put_root and "write" not in permissions:
        raise click.UsageError("--put-root needs --allow write")
