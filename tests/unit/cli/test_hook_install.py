"""`fdstore hook install` shows a change of a host's configuration, writes it, and undoes it exactly."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fdstore import cli
from fdstore.errors import FDStoreError
from fdstore.tools.catalogue import READING_TOOLS

CODEX = '# mine\nmodel = "gpt-5.2-codex"\n\n[[hooks.PostToolUse]]\nmatcher = "x"\nhooks = []'
SETTINGS = '{\n    "theme": "dark",\n    "hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": []}]}\n}'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("FDSTORE_URL", "FDSTORE_PREFIX", "FDSTORE_DATA_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(cli.cli, ["hook", "install", *words])


def config(home: Path, name: str, text: str) -> Path:
    path = home / name
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_codex_gets_a_hook_and_our_server_after_what_it_had(home):
    path = config(home, ".codex/config.toml", CODEX)

    done = run("codex", "--yes")

    assert done.exit_code == 0, done.output
    written = path.read_text()
    assert written.startswith(CODEX)
    found = tomllib.loads(written)
    first, ours = found["hooks"]["PostToolUse"]
    assert first["matcher"] == "x"
    assert " -m fdstore hook codex" in ours["hooks"][0]["command"]
    assert found["mcp_servers"]["fdstore"]["args"][:4] == ["-P", "-m", "fdstore", "mcp"]
    for line in written[len(CODEX) + 1 :].splitlines():
        assert f"+{line}" in done.output


@pytest.mark.parametrize(
    ("host", "name", "text"),
    [
        ("codex", ".codex/config.toml", CODEX),
        ("claude", ".claude/settings.json", SETTINGS),
        ("gemini", ".gemini/settings.json", SETTINGS + "\n\n"),
    ],
)
def test_undo_restores_exactly_what_was_there(home, host, name, text):
    path = config(home, name, text)

    for _ in range(2):  # a second installation changes nothing
        assert run(host, "--yes").exit_code == 0
    assert "hook " + host in path.read_text()
    undone = run(host, "--undo", "--yes")

    assert undone.exit_code == 0, undone.output
    assert path.read_text() == text
    assert "nothing to change" in run(host, "--undo", "--yes").output


def test_undo_after_other_changes_takes_out_only_the_hook(home):
    codex = config(home, ".codex/config.toml", "a = 1\n")
    gemini = config(home, ".gemini/settings.json", SETTINGS)
    for host in ("codex", "gemini"):
        assert run(host, "--yes").exit_code == 0
    codex.write_text(codex.read_text() + "[later]\n")
    settings = json.loads(gemini.read_text())
    gemini.write_text(json.dumps({**settings, "later": True}))

    for host in ("codex", "gemini"):
        assert run(host, "--undo", "--yes").exit_code == 0

    assert codex.read_text() == "a = 1\n[later]\n"
    assert json.loads(gemini.read_text()) == {**json.loads(SETTINGS), "later": True}


def test_a_file_that_was_not_there_is_gone_after_undo(home):
    assert run("gemini", "--yes", "--scope", "project").exit_code == 0
    path = home / ".gemini" / "settings.json"
    entry = json.loads(path.read_text())["hooks"]["AfterTool"][0]["hooks"][0]

    assert run("gemini", "--undo", "--yes", "--scope", "project").exit_code == 0

    assert (entry["name"], entry["type"]) == ("fdstore", "command")
    assert not path.exists()


def test_without_a_terminal_and_yes_nothing_is_written(home):
    done = run("codex")

    assert done.exit_code == 2
    assert "+[[hooks.PostToolUse]]" in done.output
    assert not (home / ".codex").exists()


@pytest.mark.parametrize(
    ("host", "name", "text"),
    [
        ("gemini", ".gemini/settings.json", "{\n  // mine\n}"),
        ("claude", ".claude/settings.json", '{"hooks": []}'),
        ("gemini", ".gemini/settings.json", r'{"a": "\ud83d"}'),
        ("codex", ".codex/config.toml", "a = " + "[" * 9000),
        ("codex", ".codex/config.toml", "a = = 1"),
        ("codex", ".codex/config.toml", "hooks = { PostToolUse = [] }"),
    ],
)
def test_what_would_be_damaged_is_refused_and_stays(home, host, name, text):
    path = config(home, name, text)

    done = run(host, "--yes")

    assert done.exit_code in (1, 2)
    assert isinstance(done.exception, SystemExit | FDStoreError), done.exception
    assert path.read_text() == text


@pytest.mark.parametrize("args", [["-P", "-m", "fdstore", "mcp", "--process", "mine"], 5, None])
def test_a_server_of_the_users_own_with_our_name_stays(home, args):
    servers = {"fdstore": {"command": "python", "args": args}}
    path = config(home, ".gemini/settings.json", json.dumps({"mcpServers": servers}))

    for words in (["--yes"], ["--undo", "--yes"]):
        done = run("gemini", *words)
        assert done.exit_code == 0
        assert json.loads(path.read_text())["mcpServers"] == servers
        assert ("Your own MCP server fdstore stays" in done.output) == (words == ["--yes"])


def test_the_password_of_the_store_goes_to_a_private_file(home, monkeypatch):
    monkeypatch.setenv("FDSTORE_URL", "redis://:secret@127.0.0.1:7000")

    done = run("codex", "--yes")

    written = (home / ".codex" / "config.toml").read_text()
    kept = home / "data" / "fdstore" / "hooks" / "store-url"
    assert "secret" not in written + done.output
    assert f"--url-file {kept}" in written
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("redis://:secret@127.0.0.1:7000\n", 0o600)

    assert run("gemini", "--yes").exit_code == 0
    assert run("codex", "--undo", "--yes").exit_code == 0
    assert kept.exists()
    assert run("gemini", "--undo", "--yes").exit_code == 0
    assert not kept.exists()


def test_our_reading_tools_are_allowed_and_those_that_the_user_allowed_stay(home):
    claude = config(home, ".claude/settings.json", '{"permissions": {"allow": ["Bash(ls)"]}}')
    gemini = config(home, ".gemini/settings.json", "{}")
    codex = config(home, ".codex/config.toml", "")
    for host in ("claude", "gemini", "codex"):
        assert run(host, "--yes").exit_code == 0

    allowed = json.loads(claude.read_text())["permissions"]["allow"]
    assert allowed == ["Bash(ls)", *(f"mcp__fdstore__{tool}" for tool in READING_TOOLS)]
    assert json.loads(gemini.read_text())["tools"]["allowed"] == [f"mcp_fdstore_{t}" for t in READING_TOOLS]
    tools = tomllib.loads(codex.read_text())["mcp_servers"]["fdstore"]["tools"]
    assert tools == {tool: {"approval_mode": "approve"} for tool in READING_TOOLS}

    claude.write_text(claude.read_text() + "\n")
    assert run("claude", "--undo", "--yes").exit_code == 0
    assert json.loads(claude.read_text()) == {"permissions": {"allow": ["Bash(ls)"]}}
