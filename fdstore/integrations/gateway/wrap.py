"""The gateway in a host's configuration (`mcp.json`): before each server, and away again.

A command becomes arguments of the gateway. A URL becomes a gateway with `--http`; the fields that this
replaces, headers too, are kept in an environment variable of the entry, which only the host and its server
see; the password and the query of the URL are there alone. So nothing is lost, and `unwrap_config` restores
the entry exactly. All other fields stay.

    {"command": "npx", "args": ["x"]}        {"command": "fdstore", "args": ["gateway", "--", "npx", "x"]}
    {"url": URL, "headers": {...}}           {"command": "fdstore", "args": ["gateway", "--http", URL],
                                              "env": {"FDSTORE_GATEWAY_ENTRY": "{...}"}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

from fdstore.errors import InvalidArgument
from fdstore.records import Record

ENTRY_VARIABLE = "FDSTORE_GATEWAY_ENTRY"
SECTIONS = ("mcpServers", "servers")
"""Where hosts list their servers: most of them, and VS Code."""

HTTP_TYPES = ("http", "streamable-http", "streamableHttp")
URL_FIELDS = ("httpUrl", "url")
SIGN_IN_FIELDS = ("oauth", "auth", "authorization", "headersHelper", "authProviderType")

Entry: TypeAlias = dict[str, Any]


class WrapChange(Record, frozen=True, kw_only=True):
    """The change of one server: `action` is "wrapped", "unwrapped" or "left"; `detail` is the program or
    host, or why it was left as it is."""

    server: str
    action: str
    detail: str


class _Left(Exception):
    """An entry is left as it is."""


def wrap_config(
    config: object, launcher: Sequence[str], options: Sequence[str] = ()
) -> tuple[Entry, list[WrapChange]]:
    """Return a configuration with the gateway before each server, and what was changed.

    launcher   the words that start `fdstore`
    options    further options of `fdstore gateway`

    Raises `InvalidArgument` if it lists no servers.

    >>> wrapped, changes = wrap_config({"mcpServers": {"git": {"command": "git-mcp"}}}, ["fdstore"])
    >>> wrapped
    {'mcpServers': {'git': {'command': 'fdstore', 'args': ['gateway', '--', 'git-mcp']}}}
    >>> unwrap_config(wrapped)[0]
    {'mcpServers': {'git': {'command': 'git-mcp'}}}
    """
    return _each(config, "wrapped", lambda entry: _wrap(entry, [*launcher, "gateway", *options]))


def unwrap_config(config: object) -> tuple[Entry, list[WrapChange]]:
    """Return a configuration without the gateway, as it was before `wrap_config`, and what was changed.
    Raises `InvalidArgument` if it lists no servers."""
    return _each(config, "unwrapped", _unwrap)


def _each(
    config: object, action: str, change: Callable[[Entry], tuple[Entry, str]]
) -> tuple[Entry, list[WrapChange]]:
    section = next((name for name in SECTIONS if isinstance(config, dict) and name in config), None)
    if not isinstance(config, dict) or section is None or not isinstance(config[section], dict):
        raise InvalidArgument("", f"an object with {' or '.join(SECTIONS)} is needed")
    changes = []
    servers: Entry = {}
    for name, entry in config[section].items():
        try:
            if not isinstance(entry, dict):
                raise _Left("it is not an object")
            servers[name], detail = change(entry)
            changes.append(WrapChange(server=name, action=action, detail=detail))
        except _Left as reason:
            servers[name] = entry
            changes.append(WrapChange(server=name, action="left", detail=str(reason)))
    return {**config, section: servers}, changes


def _wrap(entry: Entry, gateway: list[str]) -> tuple[Entry, str]:
    words = _words(entry)
    if _gateway_at(words) is not None:
        raise _Left("it has the gateway already")
    if _is_fdstore(words):
        raise _Left("it is fdstore itself")
    if words:
        program, *arguments = gateway
        args = [*arguments, "--", *words]
        return _replaced(entry, "command", {"command": program, "args": args}), PurePath(words[0]).name
    url_field = next((field for field in URL_FIELDS if isinstance(entry.get(field), str)), None)
    if url_field is None:
        raise _Left("it has neither a command nor a URL")
    if entry.get("type", "http") not in HTTP_TYPES:
        raise _Left(f"the gateway does not speak its transport, {entry['type']}")
    if not isinstance(entry.get("env", {}), dict):
        raise _Left("its env is not an object")
    for field in SIGN_IN_FIELDS:
        if field in entry:
            raise _Left(f"the host signs in to it ({field})")
    program, *arguments = gateway
    kept = {field: entry[field] for field in entry if field in ("type", url_field, "headers")}
    shown = public_url(entry[url_field])
    new = {"command": program, "args": [*arguments, "--http", shown]}
    if "type" in entry:
        new = {"type": "stdio", **new}
    env = {**entry.get("env", {}), ENTRY_VARIABLE: json.dumps(kept, ensure_ascii=False)}
    wrapped = _replaced({field: entry[field] for field in entry if field != "env"}, url_field, new, kept)
    return {**wrapped, "env": env}, shown


def public_url(url: str) -> str:
    """Return a URL without its password and query, which command lines would show to other users.

    >>> public_url("https://ann:pw@e.com/mcp?key=s"), public_url("https://e.com/mcp")
    ('https://e.com/mcp', 'https://e.com/mcp')
    """
    base = re.split(r"[?#]", url, maxsplit=1)[0]
    return re.sub(r"^([a-zA-Z]+://)[^/]*@", r"\1", base)


def whole_url(url: str, entry: Entry) -> str:
    """Return the URL of a wrapped entry, of which the command line has the public parts.

    >>> whole_url("https://e.com/mcp", {"url": "https://e.com/mcp?key=s"})
    'https://e.com/mcp?key=s'
    """
    kept = (entry.get(field) for field in URL_FIELDS)
    return next((each for each in kept if isinstance(each, str) and public_url(each) == url), url)


def _unwrap(entry: Entry) -> tuple[Entry, str]:
    words = _words(entry)
    start = _gateway_at(words)
    if start is None:
        raise _Left("it has no gateway")
    env = entry.get("env")
    if isinstance(env, dict) and ENTRY_VARIABLE in env:
        try:
            kept = json.loads(env[ENTRY_VARIABLE])
        except ValueError as error:
            raise _Left(f"{ENTRY_VARIABLE} is not JSON") from error
        rest = {name: value for name, value in env.items() if name != ENTRY_VARIABLE}
        others = {name: value for name, value in entry.items() if name not in ("type", "args", "env")}
        restored = _replaced(others, "command", kept)
        return ({**restored, "env": rest} if rest else restored), "HTTP"
    if "--" not in words[start:]:
        raise _Left("it was not made by --wrap")
    program, *arguments = words[words.index("--", start) + 1 :] or [""]
    new = {"command": program, "args": arguments} if arguments else {"command": program}
    return _replaced(entry, "command", new), PurePath(program).name


def _replaced(entry: Entry, field: str, new: Entry, dropped: Sequence[str] | Entry = ()) -> Entry:
    """Return an entry with new fields in the place of `field`; other fields keep their order."""
    result: Entry = {}
    for name, value in entry.items():
        if name == field:
            result |= new
        elif name not in new and name not in dropped and name != "args":
            result[name] = value
    return result


def _words(entry: Entry) -> list[str]:
    """Return the command of an entry with its arguments; [] if it has none."""
    command, args = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not isinstance(args, list):
        return []
    return [command, *map(str, args)]


def _is_fdstore(words: list[str]) -> bool:
    return bool(words) and (PurePath(words[0]).name == "fdstore" or words[1:3] == ["-m", "fdstore"])


def _gateway_at(words: list[str]) -> int | None:
    """Return the position of the word `gateway` of our command; None if there is none."""
    if not _is_fdstore(words):
        return None
    end = words.index("--") if "--" in words else len(words)
    return words.index("gateway", 0, end) if "gateway" in words[:end] else None
