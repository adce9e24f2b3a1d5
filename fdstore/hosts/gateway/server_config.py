"""The servers of a host's configuration that one gateway serves: how each is started.

Entries are read as hosts read them: `${NAME}` and `${NAME:-default}` stand for variables of the environment.
A server with a URL is started as a gateway of its own that passes its messages on. A server that is behind a
gateway already is started without it, since code gets whole results.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fdstore.hosts.gateway.config_entries import (
    ENTRY_VARIABLE,
    Entry,
    LeftAlone,
    check_started,
    public_url,
    servers_of,
    url_field_of,
    words_of,
)
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.wrap import unwrap_config
from fdstore.model.records import Record
from fdstore.programs.interpreter import prelude
from fdstore.text.json_spans import without_comments

PASS_ALL_CHARS = 1_000_000_000
"""The threshold of a gateway that stores nothing."""

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class ServerStart(Record, frozen=True, kw_only=True):
    """The start of a server. `name` is that of its entry as code and its tools have it."""

    name: str
    command: tuple[str, ...]
    env: dict[str, str]
    directory: str | None = None


def read_servers(
    text: str, launcher: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[ServerStart], list[str]]:
    """Return the servers of a configuration, and a sentence for each that is left out.

    launcher      the words that start `fdstore`
    environment   the variables that entries may name

    Raises `InvalidArgument` if it is not JSON or lists no servers.

    >>> starts, left = read_servers('{"mcpServers": {"git-hub": {"command": "gh"}}}', ["fdstore"], {})
    >>> starts[0].name, starts[0].command, left
    ('git_hub', ('gh',), [])
    """
    plain, _ = unwrap_config(text)
    plain = without_comments(plain)
    starts: list[ServerStart] = []
    left: list[str] = []
    taken: set[str] = set()
    for given, (_, _, entry) in servers_of(plain).items():
        try:
            check_started(entry)
            known = _expanded(entry, environment)
        except LeftAlone as reason:
            left.append(f"the server {given} is left out: {reason}")
        else:
            starts.append(_start(server_name(given, taken), known, launcher))
    return starts, left


def server_name(given: str, taken: set[str]) -> str:
    """Return the name of a server as Python and names of tools can have it, and note it: one of its own
    beside those `taken`.

    >>> names = set()
    >>> [server_name(each, names) for each in ("git-hub", "git.hub", "import", "2nd", "a__b")]
    ['git_hub', 'git_hub_2', 'mcp_import', 'mcp_2nd', 'a_b']
    """
    made = re.sub(r"[^0-9A-Za-z]+", "_", given).strip("_") or "server"
    if made[0].isdigit() or keyword.iskeyword(made) or made in prelude.NAMES or made.startswith(prelude.HOST):
        made = f"mcp_{made}"
    unique, number = made, 1
    while unique in taken:
        number += 1
        unique = f"{made}_{number}"
    taken.add(unique)
    return unique


def _start(name: str, entry: Entry, launcher: Sequence[str]) -> ServerStart:
    env = {str(key): str(value) for key, value in (entry.get("env") or {}).items()}
    directory = entry.get("cwd") if isinstance(entry.get("cwd"), str) else None
    if words := words_of(entry):
        return ServerStart(name=name, command=tuple(words), env=env, directory=directory)
    field = url_field_of(entry)
    assert field is not None
    options = GatewayOptions(tools="none", max_direct_output_chars=PASS_ALL_CHARS).words()
    command = (*launcher, "gateway", *options, "--http", public_url(entry[field]))
    env[ENTRY_VARIABLE] = json.dumps(entry)
    return ServerStart(name=name, command=command, env=env, directory=directory)


def _expanded(value: Any, environment: Mapping[str, str]) -> Any:
    """Return a value with the variables in its texts. Raises `LeftAlone` for one that is not set."""
    if isinstance(value, dict):
        return {name: _expanded(each, environment) for name, each in value.items()}
    if isinstance(value, list):
        return [_expanded(each, environment) for each in value]
    if not isinstance(value, str):
        return value

    def put(found: re.Match[str]) -> str:
        name, usual = found[1], found[2]
        if (known := environment.get(name, usual)) is None:
            raise LeftAlone(f"it needs the variable {name}, which is not set")
        return known

    return _VARIABLE.sub(put, value)
