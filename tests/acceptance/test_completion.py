"""Completion with TAB: a real bash at a terminal, and the replies to zsh."""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.conftest import STREAMS, Terminal
from tests.children import Child


class Bash:
    """An interactive bash with the completion of `fdstore`, at a terminal."""

    def __init__(self, command, folder: Path) -> None:
        self._terminal = Terminal()
        program = folder / "bin" / "fdstore"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fdstore "$@"\n')
        program.chmod(0o755)
        own = {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "TERM": "dumb",
            "PS1": "ready> ",
            "HISTFILE": "",
        }
        self.process = Child(
            ["bash", "--norc", "--noprofile", "-i"],
            **dict.fromkeys(STREAMS, self._terminal.theirs),
            env={**command.environment, **own},
            cwd=folder,
            start_new_session=True,
        )
        os.close(self._terminal.theirs)
        self._terminal.type('bind "set bell-style none"; bind "set enable-bracketed-paste off"\n')
        self._terminal.type('eval "$(fdstore completion bash)"; echo set"up"\n')
        self._terminal.until("setup")

    def tab(self, line: str) -> str:
        """Return the line after pressing TAB at its end."""
        # the line is shown by bash when it is run: with a word before it, as the argument of echo
        self._terminal.type(f"{line}\t")
        self._terminal.type("\x01echo 'is:' \x05 :'end'\n")
        shown = self._terminal.until(":end\r\n")
        return re.findall(r"\r?\nis: (.*)", shown)[-1].rstrip()

    def close(self) -> None:
        # at a prompt bash ignores SIGTERM
        self.process.kill()
        self.process.wait()
        self._terminal.close()


@pytest.mark.thorough("a shell and several commands")
def test_bash_completes_verbs_options_processes_and_descriptors(command, proc, tmp_path):
    for number in range(1, 4):
        proc.create("x", source=f"$(touch owned) {number}")
    proc.close("fd:2")
    proc.close("fd:3")
    proc.child()
    (tmp_path / "build.log").write_text("one\n")
    expected = {
        "fdstore sea": "fdstore search",
        "fdstore read --pag": "fdstore read --pages",
        "fdstore ls tria": "fdstore ls triage",
        "fdstore cat triage fd:": "fdstore cat triage fd:1",
        "fdstore cat triage f": "fdstore cat triage fd:1",
        "fdstore pipe triage -i fd:": "fdstore pipe triage -i fd:1",
        "fdstore put triage bui": "fdstore put triage build.log",
        "fdstore ls nothing-like-i": "fdstore ls nothing-like-i",
    }

    with closing(Bash(command, tmp_path)) as bash:
        found = {line: bash.tab(line) for line in expected}

    assert found == expected
    assert not (tmp_path / "owned").exists()


@pytest.mark.thorough("a shell of its own for each name")
def test_bash_completes_names_and_runs_nothing_in_them(command, proc, tmp_path):
    for key in ("notes/plan=1.md", "notes/to do's.md", "漢字", "$(touch owned)", "hidden\u202eame"):
        proc.put(key, "x")
    expected = {
        "cat triage name:notes/p": "cat triage name:notes/plan=1.md",
        "cat triage name:notes/plan=": "cat triage name:notes/plan=1.md",
        "cat triage name:notes/t": "cat triage name:notes/to do's.md",
        r"cat triage name:notes/to\ d": "cat triage name:notes/to do's.md",
        "cat triage name:漢": "cat triage name:漢字",
        "cat triage name:$": "cat triage name:$(touch owned)",
        "cat triage name:h": "cat triage name:h",
        "mv triage notes/p": "mv triage notes/plan=1.md",
        "ls triage --names notes/t": "ls triage --names notes/to do's.md",
    }

    with closing(Bash(command, tmp_path)) as bash:
        found = {line: bash.tab(f"fdstore {line}").removeprefix("fdstore ") for line in expected}

    assert found == expected
    assert not (tmp_path / "owned").exists()


def zsh_items(command, *words: str) -> list[tuple[str, str]]:
    asked = {
        "_FDSTORE_COMPLETE": "zsh_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    command.environment |= asked
    ended = command()
    for name in asked:
        del command.environment[name]
    assert (ended.code, ended.err) == (0, "")
    lines = [line for line in ended.lines if line]
    return [(value, about) for _, value, about in zip(lines[::3], lines[1::3], lines[2::3], strict=True)]


def test_zsh_completions_describe_the_source_of_descriptors(command, proc):
    proc.create("x", source="build\x1b[31m.log\nred")

    assert zsh_items(command, "fdstore", "read", "triage", "fd:") == [
        (r"fd\:1", r"build\u{1b}[31m.log\u{a}red")
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_printed(command, shell):
    ended = command("completion", shell)

    assert (ended.code, ended.err) == (0, "")
    assert "_FDSTORE_COMPLETE" in ended.out


def test_completion_starts_no_server_and_is_silent_if_none_runs(make_command, tmp_path):
    away = make_command(FDSTORE_URL="redis://127.0.0.1:1")
    none = make_command()

    assert zsh_items(away, "fdstore", "ls", "") == []
    assert zsh_items(none, "fdstore", "ls", "") == []
    assert not none.data_dir.exists()
