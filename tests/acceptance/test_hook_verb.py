"""`fdstore hook HOST`, as a host runs it: it never breaks the host."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.conftest import imported_by

LONG = "a line of a long log\n" * 1000


def event(folder, **response):
    return json.dumps(
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "make test"},
            "tool_response": {"stdout": LONG, "stderr": "", **response},
            "tool_use_id": "toolu_1",
            "session_id": "0ab1",
            "cwd": str(folder),
        }
    ).encode()


def test_a_long_output_is_stored_and_replaced_and_read_back(command, tmp_path):
    (tmp_path / "fdstore.toml").write_text('process = "shop"\n')

    answered = command("hook", "claude", stdin=event(tmp_path))

    assert (answered.code, answered.err) == (0, "")
    stub = answered.document["hookSpecificOutput"]["updatedToolOutput"]["stdout"]
    assert stub.startswith('<fd_result fd="fd:1"')
    assert command("cat", "shop", "fd:1").out == LONG
    assert "Bash" in command("saved", "shop").out


@pytest.mark.parametrize(
    ("words", "stdin", "code", "said"),
    [
        (["claude"], b"{", 0, "invalid_argument"),
        (["codex"], b'{"hook_event_name": "PostToolUse"}', 0, ""),
        (["claude", "--url", "redis://127.0.0.1:1"], None, 0, "store_unavailable"),
        (["claude", "--url", "nonsense://"], None, 0, "invalid_argument"),
        (["claude", "--url-file", "/absent"], None, 1, "the output stays as it was"),
        (["claud"], None, 1, "the output stays as it was"),
        (["instal", "codex"], None, 1, "'install'; the output stays as it was\n"),
    ],
)
def test_what_fails_leaves_the_output_as_it_was_and_never_exits_with_2(
    command, tmp_path, words, stdin, code, said
):
    answered = command("hook", *words, stdin=event(tmp_path) if stdin is None else stdin)

    assert (answered.code, answered.out) == (code, "")
    assert said in answered.err
    assert len(answered.err.splitlines()) <= 1 or code


@pytest.mark.parametrize(
    "words", [["claude-plugin"], ["hook", "install", "claude", "--yes", "--scope", "project"]]
)
def test_what_sets_up_a_host_says_what_to_install_where_no_server_can_start(make_command, words):
    hopeless = make_command(FDSTORE_REDIS_SERVER="/no-such-server")
    hopeless.environment.pop("FDSTORE_URL", None)
    elsewhere = make_command(FDSTORE_REDIS_SERVER="/no-such-server", FDSTORE_URL="redis://127.0.0.1:1")

    said, silent = hopeless(*words), elsewhere(*words)

    assert (said.code, silent.code) == (0, 0)
    [line] = [each for each in said.err.splitlines() if "nothing can be stored yet" in each]
    assert "FDSTORE_REDIS_SERVER is /no-such-server" in line
    assert line.endswith("or set FDSTORE_URL")
    assert "nothing can be stored yet" not in silent.err


def test_a_short_output_costs_no_more_than_the_start_of_a_small_program(command, tmp_path):
    out, imported = imported_by(command, "hook", "claude", stdin=event(tmp_path, stdout="short"))

    assert out == b""
    assert "fdstore.hosts.hooks.claude" in imported
    assert imported.isdisjoint({"redis", "fdstore.client", "fdstore.toolset", "mcp", "asyncio"})
