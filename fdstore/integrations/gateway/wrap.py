"""The gateway in a host's configuration (`mcp.json`): before each server, and away again.

A command becomes arguments of the gateway. A URL becomes a gateway with `--http`; the entry as it was, with
its headers, is kept in an environment variable of the new one, which only the host and its server see; the
password and the query of the URL are there alone. All but the entry keeps its bytes, comments too, and of a
command's entry all but the two values; `unwrap_config` restores the text exactly.

    {"command": "npx", "args": ["x"]}    {"command": PYTHON, "args": ["-P", "-m", "fdstore", "gateway", "--",
                                          "npx", "x"]}
    {"url": URL, "headers": {...}}       {"command": PYTHON, "args": [..., "gateway", "--http", URL],
                                          "env": {"FDSTORE_GATEWAY_ENTRY": "{...}"}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any, NamedTuple, TypeAlias

from fdstore.errors import InvalidArgument
from fdstore.records import Record
from fdstore.text.json_spans import Span, items, members, value_at, without_comments

ENTRY_VARIABLE = "FDSTORE_GATEWAY_ENTRY"
SECTIONS = ("mcpServers", "servers")
"""Where hosts list their servers: most of them, and VS Code."""

HTTP_TYPES = ("http", "streamable-http", "streamableHttp")
URL_FIELDS = ("httpUrl", "url")
KEPT_FIELDS = ("type", *URL_FIELDS, "headers")
"""The fields of an entry that the gateway takes the place of."""
ADDED_ARGS = ',"args": '
"""What precedes arguments where there were none; its spacing tells `unwrap_config` so."""
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


class _Source(NamedTuple):
    """An entry as it stands in the file: its text, the same without comments, and its value."""

    text: str
    plain: str
    entry: Entry


def wrap_config(
    text: str, launcher: Sequence[str], options: Sequence[str] = (), *, tools: str | None = None
) -> tuple[str, list[WrapChange]]:
    """Return the text of a configuration with the gateway before each server, and what was changed.

    launcher   the words that start `fdstore`
    options    further options of `fdstore gateway`
    tools      its `--tools` for one server; the others offer none, since one reads the descriptors of all

    Raises `InvalidArgument` if it is not JSON or lists no servers. Comments are allowed.

    >>> wrapped, changes = wrap_config('{"mcpServers": {"git": {"command": "git-mcp"}}}', ["fdstore"])
    >>> wrapped
    '{"mcpServers": {"git": {"command": "fdstore","args": ["gateway", "--", "git-mcp"]}}}'
    >>> unwrap_config(wrapped)[0]
    '{"mcpServers": {"git": {"command": "git-mcp"}}}'
    """
    process = _option(options, "--process")
    entries = [span.value for span in _servers(without_comments(text)).values()]
    is_given = any(_offers_tools(entry, process) for entry in entries)

    def change(source: _Source) -> tuple[str, str]:
        nonlocal is_given
        chosen = "none" if is_given else tools
        own = [] if chosen is None else ["--tools", chosen]
        changed = _wrap(source, [*launcher, "gateway", *options, *own])
        is_given = is_given or source.entry.get("disabled") is not True
        return changed

    return _each(text, "wrapped", change)


def unwrap_config(text: str) -> tuple[str, list[WrapChange]]:
    """Return the text of a configuration without the gateway, as it was before `wrap_config`, and what was
    changed. Raises `InvalidArgument` if it is not JSON or lists no servers."""
    return _each(text, "unwrapped", _unwrap)


def parse_entry(text: str) -> Entry:
    """Return an entry that may have comments. Raises `ValueError` if it is not an object."""
    entry = json.loads(without_comments(text))
    if not isinstance(entry, dict):
        raise ValueError("it is not an object")
    return entry


def _each(
    text: str, action: str, change: Callable[[_Source], tuple[str, str]]
) -> tuple[str, list[WrapChange]]:
    plain = without_comments(text)
    changes = []
    edits: list[tuple[int, int, str]] = []
    for name, (start, end, entry) in _servers(plain).items():
        try:
            if not isinstance(entry, dict):
                raise _Left("it is not an object")
            new, detail = change(_Source(text[start:end], plain[start:end], entry))
            edits.append((start, end, new))
            changes.append(WrapChange(server=name, action=action, detail=detail))
        except _Left as reason:
            changes.append(WrapChange(server=name, action="left", detail=str(reason)))
    return _edited(text, edits), changes


def _servers(plain: str) -> dict[str, Span]:
    """Return the entries of a configuration. Raises `InvalidArgument`."""
    try:
        config = json.loads(plain)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument("", f"it cannot be read as JSON: {error}") from error
    section = next((name for name in SECTIONS if isinstance(config, dict) and name in config), None)
    if section is None or not isinstance(config[section], dict):
        raise InvalidArgument("", f"an object with {' or '.join(SECTIONS)} is needed")
    return members(plain, members(plain, value_at(plain, 0).start)[section].start)


def _edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """Return a text with other characters from `start` to `end` of each edit."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _wrap(source: _Source, gateway: list[str]) -> tuple[str, str]:
    entry = source.entry
    words = _words(entry)
    if _gateway_at(words) is not None:
        raise _Left("it has the gateway already")
    if _is_fdstore(words):
        raise _Left("it is fdstore itself")
    if words:
        return _with_gateway(source, gateway), PurePath(words[0]).name
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
    shown = public_url(entry[url_field])
    new = {"command": program, "args": [*arguments, "--http", shown]}
    if "type" in entry:
        new = {"type": "stdio", **new}
    env = {**entry.get("env", {}), ENTRY_VARIABLE: source.text}
    others = {field: entry[field] for field in entry if field != "env"}
    wrapped = {**_replaced(others, url_field, new, KEPT_FIELDS), "env": env}
    return _written(wrapped, like=source.text), shown


def _with_gateway(source: _Source, gateway: list[str]) -> str:
    """Return the text of an entry whose command became arguments of the gateway."""
    program, *arguments = map(_quoted, gateway)
    fields = members(source.plain, 0)
    start, end, _ = fields["command"]
    words = ", ".join([*arguments, '"--"', source.text[start:end]])
    if "args" not in fields:
        return _edited(source.text, [(start, end, f"{program}{ADDED_ARGS}[{words}]")])
    args = fields["args"]
    before = words + (", " if args.value else "")
    return _edited(source.text, [(start, end, program), (args.start + 1, args.start + 1, before)])


def _without_gateway(source: _Source, number: int) -> str:
    """Return the text of an entry whose argument `number`, from 0, becomes its command again."""
    fields = members(source.plain, 0)
    command, args = fields["command"], fields["args"]
    start, end, _ = items(source.plain, args.start)[number]
    restored = (command.start, command.end, source.text[start:end])
    is_added = source.text[command.end : args.start] == ADDED_ARGS and source.plain[end : args.end] == "]"
    if is_added:
        return _edited(source.text, [restored, (command.end, args.end, "")])
    comma = re.compile(r"[ \t\r\n]*, ?").match(source.plain, end)
    return _edited(source.text, [restored, (args.start + 1, comma.end() if comma else end, "")])


def _written(entry: Entry, like: str) -> str:
    """Return the text of an entry with the indentation of another."""
    lines = like.split("\n")
    if len(lines) == 1:
        return json.dumps(entry, ensure_ascii=False)
    outer, inner = (line[: len(line) - len(line.lstrip())] for line in (lines[-1], lines[1]))
    step = inner.removeprefix(outer) or "  "
    newline = "\r\n" if "\r\n" in like else "\n"
    return json.dumps(entry, ensure_ascii=False, indent=step).replace("\n", newline + outer)


def _quoted(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)


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


def _unwrap(source: _Source) -> tuple[str, str]:
    entry = source.entry
    words = _words(entry)
    start = _gateway_at(words)
    if start is None:
        raise _Left("it has no gateway")
    env = entry.get("env")
    if isinstance(env, dict) and ENTRY_VARIABLE in env:
        return _unwrap_url(source, env), "HTTP"
    if "--" not in words[start:-1]:
        raise _Left("it was not made by --wrap")
    program = words.index("--", start) + 1
    return _without_gateway(source, program - 1), PurePath(words[program]).name


def _unwrap_url(source: _Source, env: Entry) -> str:
    """Return the entry that was kept, or one with its fields if others were changed since then."""
    text = env[ENTRY_VARIABLE]
    try:
        kept = parse_entry(text)
    except (TypeError, ValueError) as error:
        raise _Left(f"{ENTRY_VARIABLE} is not a JSON object") from error
    rest = {name: value for name, value in env.items() if name != ENTRY_VARIABLE}
    others = {name: value for name, value in source.entry.items() if name not in ("type", "args", "env")}
    restored = _replaced(others, "command", {name: kept[name] for name in kept if name in KEPT_FIELDS})
    if rest or "env" in kept:
        restored["env"] = rest
    return str(text) if restored == kept else _written(restored, like=source.text)


def _replaced(entry: Entry, field: str, new: Entry, dropped: Sequence[str] = ()) -> Entry:
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
    """Return whether a command starts fdstore, by its name or as a module of any Python.

    >>> _is_fdstore(["/opt/python", "-P", "-m", "fdstore", "mcp"]), _is_fdstore(["npx", "--", "fdstore"])
    (True, False)
    """
    own = words[: words.index("--")] if "--" in words else words
    return bool(own) and (PurePath(own[0]).stem == "fdstore" or ("-m", "fdstore") in pairwise(own))


def _gateway_at(words: list[str]) -> int | None:
    """Return the position of the word `gateway` of our command; None if there is none."""
    if not _is_fdstore(words):
        return None
    end = words.index("--") if "--" in words else len(words)
    return words.index("gateway", 0, end) if "gateway" in words[:end] else None


def _offers_tools(entry: object, process: str | None) -> bool:
    """Return whether an entry has a gateway that offers the tools that read descriptors of a process."""
    if not isinstance(entry, dict) or entry.get("disabled") is True:
        return False
    words = _words(entry)
    start = _gateway_at(words)
    if start is None:
        return False
    options = words[start : words.index("--", start) if "--" in words else len(words)]
    return _option(options, "--tools") != "none" and _option(options, "--process") == process


def _option(words: Sequence[str], name: str) -> str | None:
    """Return the value of an option in a command line; None if it is not there."""
    for number, word in enumerate(words):
        if word == name:
            return next(iter(words[number + 1 :]), None)
        if word.startswith(f"{name}="):
            return word.removeprefix(f"{name}=")
    return None
