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
from pathlib import PurePath

from msgspec.structs import replace

from fdstore.hosts.gateway.config_entries import (
    ENTRY_VARIABLE,
    URL_FIELDS,
    Entry,
    LeftAlone,
    Source,
    check_served,
    gateway_at,
    parse_entry,
    public_url,
    servers_of,
    url_field_of,
    words_of,
)
from fdstore.hosts.gateway.options import USUAL, GatewayOptions
from fdstore.model.records import Record
from fdstore.text.json_spans import items, members, without_comments

KEPT_FIELDS = ("type", *URL_FIELDS, "headers")
"""The fields of an entry that the gateway takes the place of."""
ADDED_ARGS = ',"args": '
"""The text that precedes arguments where there were none; its spacing tells `unwrap_config` so."""


class WrapChange(Record, frozen=True, kw_only=True):
    """The change of one server: `action` is "wrapped", "unwrapped" or "left"; `detail` is the program or
    host, or why it was left as it is."""

    server: str
    action: str
    detail: str


def wrap_config(
    text: str, launcher: Sequence[str], options: GatewayOptions = USUAL
) -> tuple[str, list[WrapChange]]:
    """Return the text of a configuration with the gateway before each server, and what was changed.

    launcher   the words that start `fdstore`
    options    of each gateway; `--tools` is for one server, and the others offer none, since one reads the
               descriptors of all

    Raises `InvalidArgument` if it is not JSON or lists no servers. Comments are allowed.

    >>> wrapped, changes = wrap_config('{"mcpServers": {"git": {"command": "git-mcp"}}}', ["fdstore"])
    >>> wrapped
    '{"mcpServers": {"git": {"command": "fdstore","args": ["gateway", "--", "git-mcp"]}}}'
    >>> unwrap_config(wrapped)[0]
    '{"mcpServers": {"git": {"command": "git-mcp"}}}'
    """
    entries = [span.value for span in servers_of(without_comments(text)).values()]
    is_given = any(_offers_tools(entry, options.process) for entry in entries)

    def change(source: Source) -> tuple[str, str]:
        nonlocal is_given
        own = replace(options, tools="none") if is_given else options
        changed = _wrap(source, [*launcher, "gateway", *own.words()])
        is_given = is_given or source.entry.get("disabled") is not True
        return changed

    return _each(text, "wrapped", change)


def unwrap_config(text: str) -> tuple[str, list[WrapChange]]:
    """Return the text of a configuration without the gateway, as it was before `wrap_config`, and what was
    changed. Raises `InvalidArgument` if it is not JSON or lists no servers."""
    return _each(text, "unwrapped", _unwrap)


def _each(
    text: str, action: str, change: Callable[[Source], tuple[str, str]]
) -> tuple[str, list[WrapChange]]:
    plain = without_comments(text)
    changes = []
    edits: list[tuple[int, int, str]] = []
    for name, (start, end, entry) in servers_of(plain).items():
        try:
            if not isinstance(entry, dict):
                raise LeftAlone("it is not an object")
            new, detail = change(Source(text[start:end], plain[start:end], entry))
            edits.append((start, end, new))
            changes.append(WrapChange(server=name, action=action, detail=detail))
        except LeftAlone as reason:
            changes.append(WrapChange(server=name, action="left", detail=str(reason)))
    return _edited(text, edits), changes


def _edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """Return a text with other characters from `start` to `end` of each edit."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _wrap(source: Source, gateway: list[str]) -> tuple[str, str]:
    entry = source.entry
    check_served(entry)
    if words := words_of(entry):
        return _with_gateway(source, gateway), PurePath(words[0]).name
    url_field = url_field_of(entry)
    assert url_field is not None
    program, *arguments = gateway
    shown = public_url(entry[url_field])
    new = {"command": program, "args": [*arguments, "--http", shown]}
    if "type" in entry:
        new = {"type": "stdio", **new}
    env = {**entry.get("env", {}), ENTRY_VARIABLE: source.text}
    others = {field: entry[field] for field in entry if field != "env"}
    wrapped = {**_replaced(others, url_field, new, KEPT_FIELDS), "env": env}
    return written(wrapped, like=source.text), shown


def _with_gateway(source: Source, gateway: list[str]) -> str:
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


def _without_gateway(source: Source, number: int) -> str:
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


def written(entry: Entry, like: str) -> str:
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


def _unwrap(source: Source) -> tuple[str, str]:
    entry = source.entry
    words = words_of(entry)
    start = gateway_at(words)
    if start is None:
        raise LeftAlone("it has no gateway")
    env = entry.get("env")
    if isinstance(env, dict) and ENTRY_VARIABLE in env:
        return _unwrap_url(source, env), "HTTP"
    if "--" not in words[start:-1]:
        raise LeftAlone("it was not made by --wrap")
    program = words.index("--", start) + 1
    return _without_gateway(source, program - 1), PurePath(words[program]).name


def _unwrap_url(source: Source, env: Entry) -> str:
    """Return the entry that was kept, or one with its fields if others were changed since then."""
    text = env[ENTRY_VARIABLE]
    try:
        kept = parse_entry(text)
    except (TypeError, ValueError) as error:
        raise LeftAlone(f"{ENTRY_VARIABLE} is not a JSON object") from error
    rest = {name: value for name, value in env.items() if name != ENTRY_VARIABLE}
    others = {name: value for name, value in source.entry.items() if name not in ("type", "args", "env")}
    restored = _replaced(others, "command", {name: kept[name] for name in kept if name in KEPT_FIELDS})
    if rest or "env" in kept:
        restored["env"] = rest
    return str(text) if restored == kept else written(restored, like=source.text)


def _replaced(entry: Entry, field: str, new: Entry, dropped: Sequence[str] = ()) -> Entry:
    """Return an entry with new fields in the place of `field`; other fields keep their order."""
    result: Entry = {}
    for name, value in entry.items():
        if name == field:
            result |= new
        elif name not in new and name not in dropped and name != "args":
            result[name] = value
    return result


def _offers_tools(entry: object, process: str | None) -> bool:
    """Return whether an entry has a gateway that offers the tools that read descriptors of a process."""
    if not isinstance(entry, dict) or entry.get("disabled") is True:
        return False
    words = words_of(entry)
    start = gateway_at(words)
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
