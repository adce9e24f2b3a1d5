"""Codex with a scripted model: its configuration, and how it is run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.hosts.conftest import run_host
from tests.hosts.scripted_responses import ScriptedResponses

CONFIG = """\
# a comment of the user
model = "gpt-5.2-codex"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{base_url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""


def write_config(home: Mapping[str, str], model: ScriptedResponses, name: str, **server: Any) -> Path:
    """Write the configuration of a user with one MCP server, which Codex waits for. Return its path."""
    path = Path(home["HOME"]) / ".codex" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    env = {f"env.{key}": value for key, value in server.pop("env", {}).items()}
    values = {**server, "required": True, **env}
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    text = CONFIG.format(base_url=model.base_url) + "\n".join([f"\n[mcp_servers.{name}]", *lines, ""])
    path.write_text(text, "utf-8")
    return path


def run_codex(codex: Path, home: Mapping[str, str], cwd: Path, prompt: str, option: str) -> str:
    """Run Codex on a prompt, and return what it prints."""
    words = ("exec", "--json", "--skip-git-repo-check", f"--dangerously-bypass-{option}", prompt)
    return run_host(codex, *words, env={**home, "SCRIPTED_KEY": "x"}, cwd=cwd)
