"""The servers in a host's configuration (`mcp.json`): what an entry says, as text and as values.

Hosts list their servers under `mcpServers`, and VS Code under `servers`. Files may have comments.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from itertools import pairwise
from pathlib import PurePath
from typing import Any, NamedTuple, TypeAlias

from fdstore.errors import InvalidArgument
from fdstore.text.json_spans import JsonSpan, members, value_at, without_comments

ENTRY_VARIABLE = "FDSTORE_GATEWAY_ENTRY"
SERVERS_VARIABLE = "FDSTORE_GATEWAY_SERVERS"
"""The variables in which a gateway keeps the entries that it took the place of: one, or all."""

SECTIONS = ("mcpServers", "servers")
"""The keys under which most hosts, and VS Code, list their servers."""

HTTP_TYPES = ("http", "streamable-http", "streamableHttp")
URL_FIELDS = ("httpUrl", "url")
SIGN_IN_FIELDS = ("oauth", "auth", "authorization", "headersHelper", "authProviderType")

Entry: TypeAlias = dict[str, Any]


class LeftAlone(Exception):
    """An entry is left as it is."""


class Source(NamedTuple):
    """An entry as it stands in the file: its text, the same without comments, and its value."""

    text: str
    plain: str
    entry: Entry


def parse_entry(text: str) -> Entry:
    """Return an entry that may have comments. Raises `ValueError` if it is not an object."""
    try:
        entry = json.loads(without_comments(text))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(entry, dict):
        raise ValueError("it is not an object")
    return entry


def servers_of(plain: str) -> dict[str, JsonSpan]:
    """Return the entries of a configuration. Raises `InvalidArgument`."""
    return members(plain, section_of(plain).start)


def section_of(plain: str) -> JsonSpan:
    """Return the object that lists the servers. Raises `InvalidArgument`."""
    try:
        config = json.loads(plain)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument("", f"it cannot be read as JSON: {error}") from error
    section = next((name for name in SECTIONS if isinstance(config, dict) and name in config), None)
    if section is None or not isinstance(config[section], dict):
        raise InvalidArgument("", f"an object with {' or '.join(SECTIONS)} is needed")
    return members(plain, value_at(plain, 0).start)[section]


def check_served(entry: Entry) -> None:
    """Raise `LeftAlone` if the gateway cannot stand before the server of an entry."""
    words = words_of(entry)
    if gateway_at(words) is not None:
        raise LeftAlone("it has the gateway already")
    if is_fdstore(words):
        raise LeftAlone("it is fdstore itself")
    if words:
        return
    if url_field_of(entry) is None:
        raise LeftAlone("it has neither a command nor a URL")
    if entry.get("type", "http") not in HTTP_TYPES:
        raise LeftAlone(f"the gateway does not speak its transport, {entry['type']}")
    if not isinstance(entry.get("env", {}), dict):
        raise LeftAlone("its env is not an object")
    for field in SIGN_IN_FIELDS:
        if field in entry:
            raise LeftAlone(f"the host signs in to it ({field})")


def check_started(entry: object) -> None:
    """Raise `LeftAlone` if one gateway for several servers does not start that of an entry."""
    if not isinstance(entry, dict):
        raise LeftAlone("it is not an object")
    if entry.get("disabled") is True:
        raise LeftAlone("it is disabled")
    check_served(entry)


def has_http_server(text: str) -> bool:
    """Return whether a gateway can stand before a server by HTTP in a configuration. Raises
    `InvalidArgument`."""
    for _, _, entry in servers_of(without_comments(text)).values():
        with suppress(LeftAlone):
            check_started(entry)
            if not words_of(entry):
                return True
    return False


def url_field_of(entry: Entry) -> str | None:
    """Return the name of the field that has the URL of a server; None if there is none."""
    return next((field for field in URL_FIELDS if isinstance(entry.get(field), str)), None)


def words_of(entry: Entry) -> list[str]:
    """Return the command of an entry with its arguments; [] if it has none."""
    command, args = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not isinstance(args, list):
        return []
    return [command, *map(str, args)]


def is_fdstore(words: list[str]) -> bool:
    """Return whether a command starts fdstore, by its name or as a module of any Python.

    >>> is_fdstore(["/opt/python", "-P", "-m", "fdstore", "mcp"]), is_fdstore(["npx", "--", "fdstore"])
    (True, False)
    """
    own = words[: words.index("--")] if "--" in words else words
    return bool(own) and (PurePath(own[0]).stem == "fdstore" or ("-m", "fdstore") in pairwise(own))


def gateway_at(words: list[str]) -> int | None:
    """Return the position of the word `gateway` of our command; None if there is none."""
    if not is_fdstore(words):
        return None
    end = words.index("--") if "--" in words else len(words)
    return words.index("gateway", 0, end) if "gateway" in words[:end] else None


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
