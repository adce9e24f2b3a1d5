"""The verb gateway: stand between an MCP host and any MCP server."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec.structs import replace

from fdstore.cli import output
from fdstore.cli.interrupts import as_interrupts
from fdstore.cli.session import CliSession, as_usage_errors, verb, warn_without_server
from fdstore.errors import InvalidArgument, TargetMissing, WriteFailed
from fdstore.setup import settings
from fdstore.setup.settings import HOST_READ_CHARS

if TYPE_CHECKING:
    from fdstore.hosts.gateway.code.programs import Programs
    from fdstore.hosts.gateway.descriptors import Descriptors
    from fdstore.hosts.gateway.server_config import ServerStart
    from fdstore.hosts.gateway.wrap import WrapChange

SERVERS = "FDSTORE_GATEWAY_SERVERS"

SWITCH_S = 0.001
"""The time that a thread that works on a large message keeps others waiting."""


@verb
@click.argument("command", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--process",
    metavar="NAME",
    help="Process of the descriptors. [default: that of the project, see `fdstore hook`]",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="All servers of a host's mcp.json as one; the tool t of the server s is s__t.",
)
@click.option("--http", "endpoint", metavar="URL", help="Endpoint of a server by streamable HTTP.")
@click.option(
    "--listen", metavar="HOST:PORT", help="With --http: serve hosts by HTTP. [default: standard input]"
)
@click.option(
    "--header",
    "headers",
    metavar="'NAME: VALUE'",
    multiple=True,
    help="With --http: send this header; other users can see it. [env: FDSTORE_GATEWAY_HEADERS, as JSON]",
)
@click.option(
    "--header-path",
    "header_paths",
    metavar="PATH",
    multiple=True,
    help="With --listen: send the headers with requests for this path too. [default: that of the URL alone]",
)
@click.option(
    "--tools",
    type=click.Choice(["none", "read", "all"]),
    help="Tools of fdstore that the host sees beside the server's: all has put_fd, write_fd and close_fd "
    "too. With --wrap: at one server, and none at the others. [default: read, and none with --code only]",
)
@click.option(
    "--code",
    type=click.Choice(["also", "only"]),
    is_flag=False,
    flag_value="also",
    help="Offer run_python, whose code calls the server's tools, and find_tools: beside these, or only.",
)
@click.option(
    "--code-allow",
    metavar="PATTERN",
    multiple=True,
    help="With --code: code may call tools like this too, which may change things: 'server.write_*'.",
)
@click.option("--name", metavar="NAME", help="With --code: the name of one server in code. [default: server]")
@click.option(
    "--wrap",
    "wrapped",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Put the gateway before each server in a host's mcp.json; with --code, one before all.",
)
@click.option(
    "--unwrap",
    "unwrapped",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Undo what --wrap did.",
)
@click.option("--out", metavar="FILE", help="With --wrap, --unwrap: write here, or to standard output for -.")
@click.option(
    "--max-direct-output-chars",
    "limit",
    metavar="N",
    type=click.IntRange(1),
    help="Longer texts become descriptors. [default: 8000, or as the project's fdstore.toml says]",
)
@click.option(
    "--max-read-chars",
    metavar="N",
    type=click.IntRange(1),
    default=HOST_READ_CHARS,
    help="Maximum result of one read_fd; 9000 for Codex. [default: 45000]",
)
def gateway(
    session: CliSession,
    command: tuple[str, ...],
    process: str | None,
    config_file: Path | None,
    endpoint: str | None,
    listen: str | None,
    headers: tuple[str, ...],
    header_paths: tuple[str, ...],
    tools: str | None,
    code: Literal["also", "only"] | None,
    code_allow: tuple[str, ...],
    name: str | None,
    wrapped: Path | None,
    unwrapped: Path | None,
    out: str | None,
    limit: int | None,
    max_read_chars: int,
) -> None:
    """Stand between a host and an MCP server, and store its long results as descriptors.

    Put the words `fdstore gateway --` before the command of any server in the configuration of a host. All
    messages pass with the values they have, except that a long text in a tool's result becomes a descriptor,
    and that the host also sees the tools read_fd, search_fd and list_fds (named fdstore_read_fd, ... if the
    server has tools of these names). {{fd:3}} in the arguments of any tool stands for the stored content.

    With --code the model writes a program that calls the tools of the server, or of all servers of a
    --config: long results stay in it, and only what it prints becomes part of the conversation.

    If the store cannot be reached, results pass unchanged. The exit code is the server's.

    --wrap changes the configuration of a host (mcpServers, or servers in VS Code) so that each server is
    behind a gateway, and prints what it did; --unwrap undoes it. Comments and format of the file stay. One of
    the servers gets the tools read_fd, search_fd and list_fds, which read what any of them returned.

    \b
    fdstore gateway --wrap .mcp.json
    fdstore gateway -- npx -y @modelcontextprotocol/server-everything
    fdstore gateway --code only -- npx -y @modelcontextprotocol/server-everything
    fdstore gateway --code only --config mcp.json
    fdstore gateway --wrap .mcp.json --code only
    fdstore gateway --http https://example.com/mcp
    fdstore gateway --http http://127.0.0.1:3001/mcp --listen 127.0.0.1:3002
    """
    from fdstore.hosts.gateway.config_entries import whole_url
    from fdstore.hosts.gateway.descriptors import Descriptors
    from fdstore.hosts.gateway.tool_list import CHOICES
    from fdstore.hosts.project import current_project, session_name

    file = wrapped or unwrapped
    if file is not None:
        if command or config_file or endpoint or listen or headers or name or (wrapped and unwrapped):
            raise click.UsageError("--wrap takes one FILE and no server")
        options = _words(
            ("--process", process, None),
            ("--max-direct-output-chars", limit, None),
            ("--max-read-chars", max_read_chars, HOST_READ_CHARS),
            ("--code", code, None),
            *(("--code-allow", pattern, None) for pattern in code_allow),
        )
        is_code = code is not None
        if wrapped is not None:
            if is_code:
                _require_python()
            warn_without_server(session.chosen_url)
        _change_file(session, file, out, options, tools=tools, unwrap=unwrapped is not None, as_one=is_code)
        return
    if out is not None:
        raise click.UsageError("--out needs --wrap or --unwrap")
    given = settings.read().gateway_servers
    servers = None if command or endpoint or config_file else given
    if (bool(command), bool(endpoint), bool(config_file), bool(servers)).count(True) != 1:
        raise click.UsageError("name a server: either a COMMAND after --, --http URL, or --config FILE")
    if endpoint is None and (listen or headers):
        raise click.UsageError("--listen and --header need --http")
    if header_paths and listen is None:
        raise click.UsageError("--header-path needs --listen")
    if code is None and (code_allow or name):
        raise click.UsageError("--code-allow and --name need --code")
    if name and (config_file or servers):
        raise click.UsageError("--name is for one server; those of a --config have their names there")
    group = _read_group(config_file, servers) if config_file or servers else None
    with as_usage_errors():
        project = current_project()
    descriptors = Descriptors(
        session.url,
        session.prefix,
        process or project.process,
        limit or project.config.direct_chars,
        _say,
        max_read_chars=max_read_chars,
        session=session_name("gateway"),
        offered=CHOICES[tools or ("none" if code == "only" else "read")],
    )
    programs = None if code is None else _programs(code, code_allow, name, group, descriptors)
    sys.setswitchinterval(SWITCH_S)
    try:
        with as_interrupts():
            if endpoint is None:
                status = _relay_command(command, group, descriptors, programs)
            else:
                entry = _wrapped_entry()
                url = whole_url(endpoint, entry)
                sent = parse_headers(headers, entry)
                status = _relay_http(url, listen, sent, header_paths, descriptors, programs)
    finally:
        descriptors.finish()
    click.get_current_context().exit(status)


def _require_python() -> None:
    """Raise `MissingExtra` if programs cannot be run."""
    from fdstore.setup.optional_packages import require

    require(("pydantic_monty",), "python")


def _require_http() -> None:
    """Raise `MissingExtra` if there can be no gateway before a server by HTTP."""
    from fdstore.setup.optional_packages import require

    require(("httpx2", "starlette", "uvicorn"), "mcp")


def _words(*options: tuple[str, object, object]) -> list[str]:
    """Return options as words of a command line: name, value, and the value that is not said."""
    return [word for name, value, usual in options if value != usual for word in (name, str(value))]


def _read_group(file: Path | None, kept: str | None) -> Sequence[ServerStart]:
    """Return how the servers of a configuration are started, or those that --wrap --code kept."""
    from fdstore.hosts.gateway.server_config import read_servers

    try:
        text = f'{{"servers": {kept}}}' if file is None else file.read_bytes().decode("utf-8")
        starts, left = read_servers(text, _launcher(), os.environ)
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}", param_hint="--config") from error
    except (UnicodeDecodeError, InvalidArgument) as error:
        problem = error.problem if isinstance(error, InvalidArgument) else "it is not UTF-8"
        raise click.BadParameter(f"{file or SERVERS}: {problem}", param_hint="--config") from error
    for each in left:
        _say(each)
    if not starts:
        raise click.BadParameter(f"{file or SERVERS}: no server is left", param_hint="--config")
    return starts


def _programs(
    mode: Literal["also", "only"],
    allowed: tuple[str, ...],
    name: str | None,
    group: Sequence[ServerStart] | None,
    descriptors: Descriptors,
) -> Programs:
    """Return what answers the calls of run_python and find_tools."""
    from fdstore.hosts.gateway.code.programs import CodeOptions, Programs
    from fdstore.programs.interpreter.prelude import check_functions

    _require_python()
    options = CodeOptions(mode=mode, allowed=allowed)
    if group is not None:
        names = tuple(start.name for start in group)
        return Programs(replace(options, servers=names, is_group=True), descriptors)
    if name is not None:
        try:
            check_functions([f"{name}.tool"])
        except ValueError as error:
            raise click.BadParameter("a Python name is needed, as github", param_hint="--name") from error
        options = replace(options, servers=(name,))
    return Programs(options, descriptors)


def _relay_command(
    command: tuple[str, ...],
    group: Sequence[ServerStart] | None,
    descriptors: Descriptors,
    programs: Programs | None,
) -> int:
    from fdstore.hosts.gateway.server_group import ServerGroup
    from fdstore.hosts.gateway.stdio_relay import StdioRelay
    from fdstore.hosts.gateway.upstream import UpstreamProcess

    server = UpstreamProcess(command) if group is None else ServerGroup(group, _say)
    descriptors.start()
    return StdioRelay(server, descriptors, programs=programs).run()


def _relay_http(
    url: str,
    listen: str | None,
    headers: Mapping[str, str],
    header_paths: tuple[str, ...],
    descriptors: Descriptors,
    programs: Programs | None,
) -> int:
    if not re.match(r"https?://[^/]", url):
        raise click.BadParameter("an http:// or https:// URL is needed", param_hint="--http")
    _require_http()
    _check_way_to(url)
    descriptors.start()
    if listen is None:
        from fdstore.hosts.gateway.http_upstream import HttpUpstream

        return HttpUpstream(url, descriptors, headers, programs=programs).run()
    from fdstore.hosts.gateway.http_relay import HttpRelay, listening_socket, serve

    with as_usage_errors("--listen"):
        socket = listening_socket(listen)
    output.show_logs()
    relay = HttpRelay(url, descriptors, headers, header_paths=header_paths, programs=programs)
    serve(relay, socket, url, _say)
    return 0


def _check_way_to(url: str) -> None:
    """Raise an error in one line if no request to a URL can be made from this environment."""
    import httpx2

    from fdstore.http.client import UnusableSetting, check_way_to

    try:
        check_way_to(url)
    except httpx2.InvalidURL as error:
        raise click.BadParameter(f"this is not a URL: {error}", param_hint="--http") from error
    except UnusableSetting as error:
        raise InvalidArgument("--http", str(error)) from error


def _wrapped_entry() -> dict[str, Any]:
    """Return the entry of this server before `--wrap`."""
    from fdstore.hosts.gateway.config_entries import parse_entry

    try:
        return parse_entry(settings.read().gateway_entry or "{}")
    except ValueError as error:
        raise click.UsageError("FDSTORE_GATEWAY_ENTRY must be a JSON object") from error


def parse_headers(given: tuple[str, ...], entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a wrapped entry, of the environment and of the options; later ones override."""
    import msgspec

    found = settings.read()
    try:
        headers = msgspec.convert(entry.get("headers", {}), dict[str, str])
        headers |= msgspec.json.decode(found.gateway_headers or "{}", type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise click.UsageError("the headers in the environment must be a JSON object of strings") from error
    for each in given:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter("'NAME: VALUE' is needed", param_hint="--header")
        headers[name.strip()] = value.strip()
    return headers


def _change_file(
    session: CliSession,
    file: Path,
    out: str | None,
    options: Sequence[str],
    *,
    tools: str | None = None,
    unwrap: bool,
    as_one: bool = False,
) -> None:
    """Wrap or unwrap the servers of a configuration, each or with `as_one` together, and print what was done
    to each. Raises `InvalidArgument`, `TargetMissing`, `WriteFailed`."""
    from fdstore.hosts.gateway.config_entries import has_http_server
    from fdstore.hosts.gateway.wrap import unwrap_config, wrap_config
    from fdstore.hosts.gateway.wrap_code import unwrap_for_code, wrap_for_code

    if file.exists() and not file.is_file():
        raise InvalidArgument(str(file), "it is not a regular file")
    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise TargetMissing(str(file), "name the configuration of a host, as .mcp.json") from error
    except (OSError, ValueError) as error:
        raise InvalidArgument(str(file), f"it cannot be read as JSON: {error}") from error
    try:
        if not unwrap and has_http_server(text):
            _require_http()
        if unwrap:
            new, changes = unwrap_for_code(text)
            if not changes:
                new, changes = unwrap_config(text)
        elif as_one:
            own = [] if tools is None else ["--tools", tools]
            new, changes = wrap_for_code(text, _launcher(), [*options, *own])
        else:
            new, changes = wrap_config(text, _launcher(), options, tools=tools)
    except InvalidArgument as error:
        raise InvalidArgument(str(file), error.problem) from error
    if out == "-":
        output.content(new.encode("utf-8"))
        _print_changes(session, changes, to_stderr=True)
        return
    target = Path(out) if out is not None else file
    if out is not None or new != text:
        _write(target, new, like=file)
    _print_changes(session, changes)


def _launcher() -> list[str]:
    """Return the words that start this command wherever the host starts it: this Python, which imports no
    module of the current directory (`-P`)."""
    return [sys.executable, "-P", "-m", "fdstore"]


def _print_changes(session: CliSession, changes: Sequence[WrapChange], *, to_stderr: bool = False) -> None:
    for change in changes:
        if to_stderr:
            output.say(f"{change.action:9}  {change.server}: {change.detail}")
        elif session.as_json:
            output.document(change)
        else:
            output.line(f"{change.action:9}  {change.server}: {change.detail}")


def _write(target: Path, text: str, like: Path) -> None:
    """Replace a file in one step, with the permissions of `like`: it may hold passwords."""
    target = target.resolve()  # a link stays a link
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode("utf-8"))
        os.chmod(fresh, like.stat().st_mode & 0o777)
        os.replace(fresh, target)
    except (OSError, UnicodeEncodeError) as error:
        fresh.unlink(missing_ok=True)
        raise WriteFailed(str(target), getattr(error, "strerror", None) or str(error)) from error


def _say(text: str) -> None:
    output.say(f"fdstore gateway: {text}")
