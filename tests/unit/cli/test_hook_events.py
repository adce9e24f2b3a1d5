"""`fdstore hook HOST` and events that it does not take."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fdstore import cli
from fdstore.cli import hook


def test_an_event_that_is_too_large_is_read_to_its_end_and_left_alone(monkeypatch):
    monkeypatch.setattr(hook, "MAX_EVENT_BYTES", 1 << 20)
    event = {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_response": {"stdout": "x" * (3 << 20)},
    }

    done = CliRunner().invoke(cli.cli, ["hook", "claude"], input=json.dumps(event))

    assert (done.exit_code, done.stdout) == (0, "")
    assert "longer than 1 MB; the output stays as it was" in done.stderr


@pytest.mark.parametrize("words", [["install"], ["install", "emacs"], ["claude", "--undo"], []])
def test_a_person_who_mistypes_gets_a_usage_error_and_a_host_another_exit_code(words):
    done = CliRunner().invoke(cli.cli, ["hook", *words])

    assert done.exit_code == (2 if words[:1] in (["install"], ["claude"]) else 1)
