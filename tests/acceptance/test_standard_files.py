"""Commands that are started with a standard input, output or error that is closed, as by some supervisors."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.children import Child
from tests.hook_events import after_tool
from tests.waiting import PATIENCE_S

CLOSED = "standard input is closed"


def started(command, closing: str, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in a new interpreter with what the shell closes by `closing`."""
    words = ["sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, "-m", "fdstore", *args]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with Child(words, env=command.environment, cwd=command.folder, text=True, **pipes) as process:
        out, err = process.communicate(stdin, timeout=PATIENCE_S)
    return subprocess.CompletedProcess(args, process.returncode, out, err)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["put", "triage", "-"], 1, CLOSED),
        (["python", "triage"], 1, CLOSED),
        (["python", "triage", "-"], 1, CLOSED),
        (["mcp", "--process", "triage"], 2, CLOSED),
        (["hook", "claude"], 0, CLOSED),
        (["redis-cli"], 0, ""),
        (["gateway", "--", "cat"], 0, ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_without_standard_input_says_so_or_ends_as_at_its_end(command, args, code, said):
    ended = started(command, "<&-", *args)

    assert (ended.returncode, ended.stdout) == (code, "")
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Error" not in ended.stderr or code == 2


@pytest.mark.parametrize("closing", [">&-", ">/dev/full", "2>/dev/full >&-", ">&- 2>&-"])
def test_a_hook_that_cannot_answer_leaves_the_output_as_it_was(command, closing):
    event = after_tool("mcp__x__y", [{"type": "text", "text": "x" * 9000}], cwd=str(command.folder))

    ended = started(command, closing, "hook", "codex", stdin=json.dumps(event))

    assert (ended.returncode, ended.stdout) == (0, "")
    if "2>" not in closing:
        [said] = ended.stderr.splitlines()
        assert said.startswith("fdstore: write_error: standard output failed: ")
        assert said.endswith("the output stays as it was")


def test_a_file_that_cannot_be_read_is_a_path_that_cannot_be_used(command):
    unreadable = f"/proc/{os.getpid()}/mem"

    for args in (["python", "triage", unreadable], ["put", "triage", unreadable]):
        ended = command(*args)

        assert ended.code == 1
        assert "permission_error" in ended.err
        assert "reading it failed: input/output error" in ended.err
