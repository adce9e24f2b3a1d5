"""One gateway for all servers in a host's configuration (`mcp.json`), whose programs call their tools; and
each server as it was.

The first entry that a gateway can serve becomes that of the gateway, and the others go. It keeps the text of
all servers as it was in an environment variable, so the way back is exact, comments too. Entries that no
gateway can serve stay where they are.

    {"git": {"command": "git-mcp"},      {"fdstore": {"command": PYTHON, "args": ["-P", "-m", "fdstore",
     "hub": {"url": URL}}                 "gateway", "--code", "only"],
                                          "env": {"FDSTORE_GATEWAY_SERVERS": "{\"git\": ..., \"hub\": ...}"}}}
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.config_entries import (
    SERVERS_VARIABLE,
    Entry,
    LeftAlone,
    check_started,
    section_of,
)
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.wrap import WrapChange, unwrap_config, written
from fdstore.text.json_spans import members, without_comments

NAME = "fdstore"


def wrap_for_code(
    text: str, launcher: Sequence[str], options: GatewayOptions
) -> tuple[str, list[WrapChange]]:
    """Return the text of a configuration with one gateway for all servers, and what was changed.

    launcher   the words that start `fdstore`
    options    of the gateway, with `--code`

    Raises `InvalidArgument` if it is not JSON, lists no servers, or has none that a gateway can serve.

    >>> wrapped, _ = wrap_for_code('{"servers": {"git": {"command": "g"}}}', ["fdstore"], GatewayOptions())
    >>> list(json.loads(wrapped)["servers"]), unwrap_for_code(wrapped)[0]
    (['fdstore'], '{"servers": {"git": {"command": "g"}}}')
    """
    text, _ = unwrap_config(text)  # a gateway before each server would hide the results from code
    start, end, entries = section_of(without_comments(text))
    if _kept_in(entries) is not None:
        raise InvalidArgument("", "it has one gateway for its servers already: --unwrap comes first")
    section = text[start:end]
    changes = []
    for name, entry in entries.items():
        try:
            check_started(entry)
            changes.append(WrapChange(server=name, action="wrapped", detail=f"behind {NAME}"))
        except LeftAlone as reason:
            changes.append(WrapChange(server=name, action="left", detail=str(reason)))
    served = {change.server for change in changes if change.action == "wrapped"}
    if not served:
        raise InvalidArgument("", "it has no server that a gateway can serve")
    if NAME in entries.keys() - served:
        raise InvalidArgument("", f"another server has the name {NAME}: give it another name")
    words = [*launcher, "gateway", *options.words()]
    ours = {"command": words[0], "args": words[1:], "env": {SERVERS_VARIABLE: section}}
    spans = members(without_comments(section), 0)
    first = next(span for name, span in spans.items() if name in served)
    shown = written(ours, like=section[first.start : first.end])
    return text[:start] + _with_one(section, shown, served) + text[end:], changes


def unwrap_for_code(text: str) -> tuple[str, list[WrapChange]]:
    """Return the text of a configuration with its servers as they were before `wrap_for_code`, and what was
    changed; servers that were added or changed since then stay. Raises `InvalidArgument`."""
    start, end, entries = section_of(without_comments(text))
    name = _kept_in(entries)
    if name is None:
        return text, []
    section = text[start:end]
    kept = str(entries[name]["env"][SERVERS_VARIABLE])
    try:
        old = json.loads(without_comments(kept))
    except ValueError as error:
        raise InvalidArgument("", f"{SERVERS_VARIABLE} is not JSON: {error}") from error
    if not isinstance(old, dict):
        raise InvalidArgument("", f"{SERVERS_VARIABLE} is not an object")
    served = {each for each, entry in old.items() if _is_served(entry)}
    shown = section[slice(*members(without_comments(section), 0)[name][:2])]
    if _with_one(kept, shown, served) == section:
        new = kept
    else:
        others = {each: entry for each, entry in entries.items() if each != name}
        new = written({**old, **others}, like=section)
    changes = [WrapChange(server=each, action="unwrapped", detail=f"was behind {name}") for each in old]
    return text[:start] + new + text[end:], [each for each in changes if each.server in served]


def _with_one(section: str, shown: str, served: set[str]) -> str:
    """Return the text of the servers with the gateway in place of the first of those it serves, and without
    the others."""
    plain = without_comments(section)
    result: list[str] = []
    kept = before = 1  # after the brace
    is_first = True
    for name, span in members(plain, 0).items():
        if name in served and is_first:
            result += [section[kept : plain.index('"', before)], f"{json.dumps(NAME)}: ", shown]
            is_first = False
            kept = span.end
        elif name in served:
            result.append(section[kept:before])
            kept = span.end
        before = span.end
    return "".join([section[:1], *result, section[kept:]])


def _is_served(entry: object) -> bool:
    try:
        check_started(entry)
    except LeftAlone:
        return False
    return True


def _kept_in(entries: Entry) -> str | None:
    """Return the name of the entry that keeps the others; None if there is none."""
    for name, entry in entries.items():
        env = entry.get("env") if isinstance(entry, dict) else None
        if isinstance(env, dict) and SERVERS_VARIABLE in env:
            return name
    return None
