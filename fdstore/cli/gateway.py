"""The verb gateway: stand between an MCP host and any MCP server."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from fdstore.cli import output
from fdstore.cli.interrupts import as_interrupts
from fdstore.cli.session import CliSession, as_usage_errors, verb, warn_without_server
from fdstore.cli.struct_options import check_needs, given_fields, struct_options
from fdstore.errors import InvalidArgument, TargetMissing, WriteFailed, quoted
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.setup import settings

if TYPE_CHECKING:
    from fdstore.hosts.gateway.code.programs import Programs
    from fdstore.hosts.gateway.descriptors import Descriptors
    from fdstore.hosts.gateway.server_config import ServerStart
    from fdstore.hosts.gateway.wrap import WrapChange

SERVERS = "FDSTORE_GATEWAY_SERVERS"

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t -~]*")
"""What RFC 9110 allows in the name of a header, and in its value without other bytes than ASCII."""


SWITCH_S = 0.001
"""The time that a thread that works on a large message keeps others waiting."""


@verb
@click.argument("command", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
@struct_options(GatewayOptions)
def gateway(session: CliSession, command: tuple[str, ...], **given: Any) -> None:
    """Stand between a host and an MCP server, and store its long results as descriptors.

    Put the words `fdstore gateway --` before the command of any server in the configuration of a host. All
    messages pass with the values they have, except that a long text in a tool's result becomes a descriptor,
    and that the host also sees our tools that only read, such as read_fd (named fdstore_read_fd if the server
    has a tool of that name). {{fd:3}} in the arguments of any tool stands for the stored content.

    With --code the model writes a program that calls the tools of the server, or of all servers of a
    --config: long results stay in it, and only what it prints becomes part of the conversation.

    If the store cannot be reached, results pass unchanged. The exit code is the server's.

    --wrap changes the configuration of a host (mcpServers, or servers in VS Code) so that each server is
    behind a gateway, and prints what it did; --unwrap undoes it. Comments and format of the file stay. One of
    the servers gets our reading tools, which read what any of them returned.

    \b
    fdstore gateway --wrap .mcp.json
    fdstore gateway -- npx -y @modelcontextprotocol/server-everything
    fdstore gateway --code only -- npx -y @modelcontextprotocol/server-everything
    fdstore gateway --code only --config mcp.json
    fdstore gateway --wrap .mcp.json --code only
    fdstore gateway --http https://example.com/mcp
    fdstore gateway --http http://127.0.0.1:3001/mcp --listen 127.0.0.1:3002
    """
    from fdstore.hosts.gateway.descriptors import Descriptors
    from fdstore.hosts.project import current_project, session_name

    options = GatewayOptions(**given)
    file = options.wrap or options.unwrap
    if file is not None:
        _change_file(session, file, command, options)
        return
    if options.out is not None:
        raise click.UsageError("--out needs --wrap or --unwrap")
    kept = settings.read().gateway_servers
    servers = None if command or options.http or options.config else kept
    if (bool(command), bool(options.http), bool(options.config), bool(servers)).count(True) != 1:
        raise click.UsageError("name a server: either a COMMAND after --, --http URL, or --config FILE")
    check_needs(options)
    is_group = bool(options.config or servers)
    if options.name and is_group:
        raise click.UsageError("--name is for one server; those of a --config have their names there")
    group = _read_group(options.config, servers) if is_group else None
    with as_usage_errors():
        project = current_project()
    descriptors = Descriptors(
        *(options, project, _say),
        url=session.url,
        prefix=session.prefix,
        session=session_name("gateway"),
    )
    programs = None if options.code is None else _programs(group, descriptors)
    sys.setswitchinterval(SWITCH_S)
    try:
        with as_interrupts():
            status = _run(command, group, descriptors, programs)
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


def _programs(group: Sequence[ServerStart] | None, descriptors: Descriptors) -> Programs:
    """Return what answers the calls of run_python and find_tools."""
    from fdstore.hosts.gateway.code.programs import Programs
    from fdstore.programs.interpreter.prelude import check_functions

    _require_python()
    if (name := descriptors.options.name) is not None:
        try:
            check_functions([f"{name}.tool"])
        except ValueError as error:
            raise click.BadParameter("a Python name is needed, as github", param_hint="--name") from error
    return Programs(descriptors, None if group is None else [start.name for start in group])


def _run(
    command: tuple[str, ...],
    group: Sequence[ServerStart] | None,
    descriptors: Descriptors,
    programs: Programs | None,
) -> int:
    """Stand before a server until the host or the server ends. Return the exit code."""
    from fdstore.hosts.gateway.relay import Relay
    from fdstore.hosts.gateway.server_group import ServerGroup
    from fdstore.hosts.gateway.upstream import UpstreamProcess

    options = descriptors.options
    if options.http is None:
        server = UpstreamProcess(command) if group is None else ServerGroup(group, _say)
        return Relay(server, descriptors, programs=programs).run()
    entry = _wrapped_entry()
    url, headers = _whole_url(options.http, entry), parse_headers(options.header, entry)
    if options.listen is None:
        from fdstore.hosts.gateway.http_upstream import HttpUpstream

        return Relay(HttpUpstream(url, headers), descriptors, grace_s=0, programs=programs).run()
    from fdstore.hosts.gateway.http_relay import HttpRelay, listening_socket, serve

    with as_usage_errors("--listen"):
        socket = listening_socket(options.listen)
    output.show_logs()
    descriptors.start()
    serve(HttpRelay(url, descriptors, headers, programs=programs), socket, url, _say)
    return 0


def _whole_url(given: str, entry: dict[str, Any]) -> str:
    """Return the URL of a server, which `--wrap` may have kept in part. Raises an error in one line if no
    request to it can be made from this environment."""
    from fdstore.hosts.gateway.config_entries import whole_url

    url = whole_url(given, entry)
    if not re.match(r"https?://[^/]", url):
        raise click.BadParameter("an http:// or https:// URL is needed", param_hint="--http")
    _require_http()
    import httpx2

    from fdstore.http.client import UnusableSetting, check_way_to

    try:
        check_way_to(url)
    except httpx2.InvalidURL as error:
        raise click.BadParameter(f"this is not a URL: {error}", param_hint="--http") from error
    except UnusableSetting as error:
        raise InvalidArgument("--http", str(error)) from error
    return url


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
    for name, value in headers.items():
        if not (_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)):
            raise click.UsageError(f"HTTP cannot send the header {quoted(name)}: use printable ASCII")
    return headers


def _change_file(session: CliSession, file: Path, command: tuple[str, ...], options: GatewayOptions) -> None:
    """Wrap or unwrap the servers of a configuration, each or with `--code` together, and print what was done
    to each. Raises `InvalidArgument`, `TargetMissing`, `WriteFailed`."""
    from fdstore.hosts.gateway.config_entries import has_http_server
    from fdstore.hosts.gateway.wrap import unwrap_config, wrap_config
    from fdstore.hosts.gateway.wrap_code import unwrap_for_code, wrap_for_code

    out, passed_on = options.out, replace(options, wrap=None, unwrap=None, out=None)
    is_for_one = any(not field.about.wraps for field in given_fields(passed_on))
    if command or is_for_one or (options.wrap and options.unwrap):
        raise click.UsageError("--wrap takes one FILE and no server")
    check_needs(options)
    if options.wrap is not None:
        if options.code is not None:
            _require_python()
        warn_without_server(session.chosen_url)
    if file.exists() and not file.is_file():
        raise InvalidArgument(str(file), "it is not a regular file")
    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise TargetMissing(str(file), "name the configuration of a host, as .mcp.json") from error
    except (OSError, ValueError) as error:
        raise InvalidArgument(str(file), f"it cannot be read as JSON: {error}") from error
    try:
        if options.wrap is not None and has_http_server(text):
            _require_http()
        if options.wrap is None:
            new, changes = unwrap_for_code(text)
            if not changes:
                new, changes = unwrap_config(text)
        else:
            change = wrap_config if options.code is None else wrap_for_code
            new, changes = change(text, _launcher(), passed_on)
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
