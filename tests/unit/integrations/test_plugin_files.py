"""The files of the plugin for Claude Code agree with each other and with the code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import fdstore
from fdstore import cli
from fdstore.hosts.hooks.host_tool import FIELDS
from fdstore.hosts.hooks.own_tools import HOOK_TOOL
from fdstore.hosts.hooks.plugin import PYTHON_SKILL, write_plugin
from fdstore.results.config import FDConfig


def test_the_hook_calls_the_tool_of_the_plugins_own_server(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path / "plugin", {"FDSTORE_PREFIX": "ann"})

    manifest = json.loads((plugin / ".claude-plugin" / "plugin.json").read_text())
    [group] = json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"]["PostToolUse"]
    [(server_name, server)] = json.loads((plugin / ".mcp.json").read_text())["mcpServers"].items()
    [hook] = group["hooks"]
    assert manifest["version"] == fdstore.__version__
    assert hook["server"] == f"plugin:{manifest['name']}:{server_name}"
    assert hook["tool"] == HOOK_TOOL
    assert hook["input"] == {name: f"${{{name}}}" for name in FIELDS}
    assert (server["command"], server["env"]) == (sys.executable, {"FDSTORE_PREFIX": "ann"})


def test_the_skill_is_short_and_says_the_size(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path / "plugin")

    skill = (plugin / "skills" / "fdstore" / "SKILL.md").read_text()

    assert f"{FDConfig().direct_chars} characters" in skill
    assert len(skill.split()) < 300


def test_run_python_and_its_skill_are_there_where_its_interpreter_is(tmp_path: Path) -> None:
    def written(*, with_python: bool) -> tuple[list[str], bool]:
        plugin = write_plugin(tmp_path / "plugin", with_python=with_python)
        server = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["fdstore"]
        skill = plugin / PYTHON_SKILL / "SKILL.md"
        if with_python:
            words = skill.read_text().split("---", 2)[2].split()
            assert 150 < len(words) < 250
        return server["args"][server["args"].index("mcp") + 1 :], skill.exists()

    assert written(with_python=True) == (["--hook", "claude", "--allow", "read,write,python"], True)
    assert written(with_python=False) == (["--hook", "claude"], False)


def test_the_plugin_is_written_below_the_data_directory_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FDSTORE_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("FDSTORE_URL", raising=False)

    first = CliRunner().invoke(cli.cli, ["claude-plugin"])
    (tmp_path / "claude-plugin" / ".mcp.json").write_text("of an older version")
    second = CliRunner().invoke(cli.cli, ["claude-plugin", "--json"])
    refused = CliRunner().invoke(cli.cli, ["claude-plugin", "--url", "redis://127.0.0.1"])

    assert first.output.strip() == str(tmp_path / "claude-plugin")
    assert json.loads(second.output) == {"directory": str(tmp_path / "claude-plugin")}
    assert "read,write,python" in (tmp_path / "claude-plugin" / ".mcp.json").read_text()
    assert (refused.exit_code, "set FDSTORE_URL there" in refused.output) == (2, True)
