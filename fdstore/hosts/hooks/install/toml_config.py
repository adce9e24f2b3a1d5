"""Codex: a marked part at the end of config.toml. Everything before and after it stays as it is."""

from __future__ import annotations

import json
import tomllib

from fdstore.errors import InvalidArgument
from fdstore.hosts.hooks.install.launch import Launch
from fdstore.tools.tool_names import READING_NAMES

BEGIN = "# >>> fdstore: `fdstore hook install codex --undo` removes this part\n"
END = "# <<< fdstore\n"

MAX_READ_CHARS = "9000"
"""The largest result of one read: of more than some 10,000 characters Codex cuts out the middle."""

MATCHER = "^mcp__"
"""The tools whose outputs Codex hands over whole. It cuts outputs of commands before a hook sees them."""


def with_hook(text: str, launch: Launch) -> str:
    """Return the configuration with the hook, and with fdstore's MCP server unless it has one; its reading
    tools run without a question. An older part is replaced. Raises `InvalidArgument` for what is not TOML,
    or leaves no room for a hook."""
    text = without_hook(text)
    part = [
        "[[hooks.PostToolUse]]",
        f"matcher = {json.dumps(MATCHER)}",
        "",
        "[[hooks.PostToolUse.hooks]]",
        'type = "command"',
        f"command = {json.dumps(launch.line('hook', 'codex'))}",
    ]
    if not has_other_server(text):
        part += [
            "",
            "[mcp_servers.fdstore]",
            f"command = {json.dumps(launch.python)}",
            f"args = {json.dumps(launch.arguments('mcp', '--max-read-chars', MAX_READ_CHARS))}",
        ]
        if launch.environment:
            pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in launch.environment.items())
            part.append(f"env = {{ {pairs} }}")
        for tool in READING_NAMES:
            part += ["", f"[mcp_servers.fdstore.tools.{tool}]", 'approval_mode = "approve"']
    between = "\n" if text and not text.endswith("\n") else ""
    changed = f"{text}{between}{BEGIN}{chr(10).join(part)}\n{END}"
    _parsed(changed)
    return changed


def has_other_server(text: str) -> bool:
    """Return whether the configuration has a server called fdstore beside the marked part: the user's own."""
    servers = _parsed(without_hook(text)).get("mcp_servers")
    return isinstance(servers, dict) and "fdstore" in servers


def without_hook(text: str) -> str:
    """Return the configuration without the marked part.

    >>> without_hook("a = 1\\n" + BEGIN + "b = 2\\n" + END + "[c]\\n")
    'a = 1\\n[c]\\n'
    """
    before, found, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    return before + after if found and ended else text


def _parsed(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidArgument("config.toml", f"it cannot be changed: {error}") from error
