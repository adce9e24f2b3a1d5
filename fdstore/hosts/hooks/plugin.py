"""The plugin for Claude Code: a directory for `claude --plugin-dir`.

Its files are in `claude_plugin/` of this package, but for `.mcp.json`, which starts this installation of
fdstore: Claude Code may run with another PATH. So the plugin is written below the data directory, each
time, since fdstore may have been updated or moved.
"""

from __future__ import annotations

import shutil
import sys
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from fdstore.files.target import Target

MCP_FILE = ".mcp.json"

PYTHON_SKILL = Path("skills", "run-python")
"""The skill about the tool `run_python`."""


def write_plugin(
    directory: Path, environment: dict[str, str] | None = None, *, with_python: bool = False
) -> Path:
    """Write the plugin, replacing what an older version wrote, and return its directory. Servers get the
    variables of `environment` besides those that Claude Code has. `with_python`: they offer `run_python`,
    which needs its interpreter.

    Raises `WriteFailed`.
    """
    _copy(resources.files("fdstore.hosts.hooks") / "claude_plugin", directory)
    args = ["-P", "-m", "fdstore", "mcp", "--hook", "claude"]
    if with_python:
        args += ["--allow", "read,write,python"]
    else:
        shutil.rmtree(directory / PYTHON_SKILL, ignore_errors=True)
    server = {"command": sys.executable, "args": args}
    servers = {"mcpServers": {"fdstore": {**server, "env": environment or {}}}}
    _write(directory / MCP_FILE, msgspec.json.format(msgspec.json.encode(servers), indent=2) + b"\n")
    return directory


def _copy(source: Traversable, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for each in source.iterdir():
        if each.is_dir():
            _copy(each, directory / each.name)
        elif not each.name.endswith((".py", ".pyc")):
            _write(directory / each.name, each.read_bytes())


def _write(path: Path, data: bytes) -> None:
    """Write a file in one step: Claude Code may be reading it."""
    with Target(path, exist_ok=True) as target:
        target.write(data)
        target.commit()
