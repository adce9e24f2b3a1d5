"""`fdstore diff`, beside the diff of this machine: the same changes, the same exit codes."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.waiting import PATIENCE_S

OLD = "".join(f"line {number}\n" for number in range(1, 60))
NEW = OLD.replace("line 7\n", "line seven\n").replace("line 30\n", "").replace("line 59\n", "line 59")
COLOURS = re.compile("\x1b\\[[0-9;]*[mK]")


@pytest.mark.parametrize("context", [None, "0", "30"])
def test_diff_has_the_output_and_exit_code_of_diff(command, proc, tmp_path, context):
    proc.create(OLD, page_size=100)
    proc.create(NEW)
    (tmp_path / "old").write_text(OLD)
    (tmp_path / "new").write_text(NEW)
    options = [] if context is None else ["-U", context]

    ours = command("diff", "triage", "fd:1", "2", *options)
    theirs = subprocess.run(
        ["diff", *(options or ["-u"]), tmp_path / "old", tmp_path / "new"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (ours.code, ours.err) == (theirs.returncode, "") == (1, "")
    assert ours.out.splitlines()[:2] == ["--- fd:1", "+++ fd:2"]
    assert ours.out.splitlines()[2:] == theirs.stdout.splitlines()[2:]


def test_equal_texts_print_nothing(command, proc):
    proc.create(OLD)

    equal = command("diff", "triage", "fd:1", "fd:1#L1-59")

    assert (equal.code, equal.out, equal.err) == (0, "", "")


def test_diff_colours_lines_and_escapes_control_characters_on_a_terminal(command, proc):
    proc.create("same\n-- old \x1b[2J\n")
    proc.create("same\nnew\n")
    command.environment.pop("NO_COLOR", None)

    shown = command.on_terminal("diff", "triage", "1", "2")
    plain = command.on_terminal("diff", "triage", "1", "2", "--color", "never")
    piped = command("diff", "triage", "1", "2")

    assert "\x1b[31m--- old \\u{1b}[2J\x1b[m" in shown.out
    assert "\x1b[32m+new\x1b[m" in shown.out
    assert "\x1b[1m--- fd:1\x1b[m" in shown.out
    assert COLOURS.sub("", shown.out) == plain.out
    assert piped.out.endswith("@@ -1,2 +1,2 @@\n same\n--- old \x1b[2J\n+new\n")


def test_diff_as_json_is_one_document(command, proc):
    proc.create(OLD)
    proc.create(NEW)

    found = command("diff", "triage", "1", "2", "--json")

    shown = found.document
    assert found.code == 1
    assert (shown["a"], shown["b"], shown["removed"], shown["added"]) == ("fd:1", "fd:2", 3, 2)
    assert shown["diff"] == proc.diff("fd:1", "fd:2")
