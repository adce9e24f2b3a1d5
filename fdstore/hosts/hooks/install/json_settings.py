"""Claude Code and Gemini CLI: entries of settings.json. Other keys and their order stay, and the indentation.

JSON has no comments. A file that has some is not changed, because rewriting it would lose them.
"""

from __future__ import annotations

import json
import re
from typing import Any

from fdstore.errors import InvalidArgument
from fdstore.hosts.hooks.install.launch import Launch, is_ours
from fdstore.tools.tool_names import READING_NAMES

EVENTS = {"claude": "PostToolUse", "gemini": "AfterTool"}

MATCHERS = {
    "claude": "Bash|BashOutput|Grep|WebFetch|Agent|Task|mcp__.*",
    "gemini": "run_shell_command|grep_search|search_file_content|web_fetch|mcp_.*",
}
"""Host -> its tools whose outputs may be long. A program is started for each call of them."""

READING = {
    "claude": ("permissions", "allow", [f"mcp__fdstore__{tool}" for tool in READING_NAMES]),
    "gemini": ("tools", "allowed", [f"mcp_fdstore_{tool}" for tool in READING_NAMES]),
}
"""Host -> where it lists what runs without a question, and the names of our reading tools there. A model that
cannot read an output which was replaced has less than without the hook."""


def with_hook(text: str, host: str, launch: Launch) -> str:
    """Return the settings with the hook, and our reading tools allowed; those of Gemini CLI also with
    fdstore's MCP server, unless they have one. Raises `InvalidArgument` for what is not JSON, or has other
    types than the host reads."""
    settings = _without(_parsed(text), host)
    hooks = _child(settings, "hooks", {})
    command: dict[str, Any] = {"type": "command", "command": launch.line("hook", host)}
    if host == "gemini":
        command = {"name": "fdstore", **command, "timeout": 30_000}
        server: dict[str, Any] = {"command": launch.python, "args": launch.arguments("mcp")}
        if launch.environment:
            server["env"] = launch.environment
        _child(settings, "mcpServers", {}).setdefault("fdstore", server)
    _child(hooks, EVENTS[host], []).append({"matcher": MATCHERS[host], "hooks": [command]})
    parent, name, names = READING[host]
    _child(_child(settings, parent, {}), name, []).extend(names)
    return _written(settings, text)


def without_hook(text: str, host: str) -> str:
    """Return the settings without the hook and the server."""
    settings = _parsed(text)
    before = json.dumps(settings)
    changed = _without(settings, host)
    return text if json.dumps(changed) == before else _written(changed, text)


def has_other_server(text: str) -> bool:
    """Return whether the settings have a server called fdstore that is not as we write it: the user's own."""
    server = _child(_parsed(text), "mcpServers", {}).get("fdstore")
    return server is not None and not _is_our_server(server)


def _without(settings: dict[str, Any], host: str) -> dict[str, Any]:
    hooks = _child(settings, "hooks", {})
    groups = _child(hooks, EVENTS[host], [])
    for group in groups:
        commands = group.get("hooks") if isinstance(group, dict) else None
        if isinstance(commands, list):
            kept = [each for each in commands if not _is_our_hook(each, host)]
            if not kept and commands:
                group.clear()
            else:
                group["hooks"] = kept
    hooks[EVENTS[host]] = [group for group in groups if group != {}]
    parent, name, names = READING[host]
    allowing = _child(settings, parent, {})
    allowing[name] = [each for each in _child(allowing, name, []) if each not in names]
    servers = _child(settings, "mcpServers", {})
    if _is_our_server(servers.get("fdstore")):
        del servers["fdstore"]
    _drop_empty(hooks, EVENTS[host])
    _drop_empty(settings, "hooks")
    _drop_empty(settings, "mcpServers")
    _drop_empty(allowing, name)
    _drop_empty(settings, parent)
    return settings


def _is_our_hook(command: object, host: str) -> bool:
    return isinstance(command, dict) and is_ours(command.get("command"), host)


def _is_our_server(server: object) -> bool:
    """Return whether a server is as we write it. One that has other options is the user's own."""
    args = server.get("args") if isinstance(server, dict) else None
    if not isinstance(args, list) or args[:4] != Launch().arguments("mcp"):
        return False
    return len(args) % 2 == 0 and set(args[4::2]) <= {"--url-file", "--prefix"}


def _child(parent: dict[str, Any], name: str, default: Any) -> Any:
    found = parent.setdefault(name, default)
    if type(found) is not type(default):
        kind = "an object" if default == {} else "a list"
        raise InvalidArgument("settings.json", f"its {name} is not {kind}")
    return found


def _drop_empty(parent: dict[str, Any], name: str) -> None:
    if not parent.get(name):
        parent.pop(name, None)


def _parsed(text: str) -> dict[str, Any]:
    try:
        settings = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        problem = f"it is not plain JSON ({error}), so it would lose comments; add the hook by hand"
        raise InvalidArgument("settings.json", problem) from error
    if not isinstance(settings, dict):
        raise InvalidArgument("settings.json", "it is not a JSON object")
    return settings


def _written(settings: dict[str, Any], before: str) -> str:
    found = re.search(r"^([ \t]+)\S", before, re.MULTILINE)
    written = json.dumps(settings, indent=found[1] if found else 2, ensure_ascii=False) + "\n"
    if not written.isascii() and written != written.encode("utf-8", "replace").decode("utf-8"):
        raise InvalidArgument("settings.json", "it has half of a character (\\ud800 to \\udfff)")
    return written
