"""Completion with TAB: a real bash at a terminal, and the replies to zsh."""

from __future__ import annotations

import os
import pty
import re
import shlex
import sys
import time
from pathlib import Path

import pytest

from tests.children import Child
from tests.waiting import PATIENCE_S


class Bash:
    """An interactive bash with the completion of `fdstore`, at a terminal."""

    def __init__(self, command, folder: Path) -> None:
        self._terminal, theirs = pty.openpty()
        program = folder / "bin" / "fdstore"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fdstore "$@"\n')
        program.chmod(0o755)
        environment = {
            **command.environment,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "TERM": "dumb",
            "PS1": "ready> ",
            "HISTFILE": "",
        }
        self.process = Child(
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        os.close(theirs)
        self._send('bind "set bell-style none"; bind "set enable-bracketed-paste off"\n')
        self._send('eval "$(fdstore completion bash)"; echo set"up"\n')
        self._until("setup")

    def _send(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def _until(self, text: str) -> str:
        until, seen = time.monotonic() + PATIENCE_S, ""
        while text not in seen:
            assert time.monotonic() < until, seen
            seen += os.read(self._terminal, 4096).decode()
        return seen

    def tab(self, line: str) -> str:
        """Return the line after pressing TAB at its end."""
        # the line is shown by bash when it is run: with a word before it, as the argument of echo
        self._send(f"{line}\t")
        self._send("\x01echo 'is:' \x05 :'end'\n")
        found = re.findall(r"\r?\nis: (.*?) ?:end\r?\n", self._until(":end\r\n"))
        return found[-1].rstrip()

    def close(self) -> None:
        # at a prompt bash ignores SIGTERM
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


def test_bash_completes_verbs_options_processes_and_descriptors(command, store, tmp_path):
    proc = store.process("triage")
    for number in range(1, 4):
        proc.create("x", source=f"$(touch owned) {number}")
    proc.close("fd:2")
    proc.close("fd:3")
    proc.child()
    (tmp_path / "build.log").write_text("one\n")
    bash = Bash(command, tmp_path)
    try:
        found = {
            line: bash.tab(line)
            for line in [
                "fdstore sea",
                "fdstore read --pag",
                "fdstore ls tria",
                "fdstore cat triage fd:",
                "fdstore cat triage f",
                "fdstore pipe triage -i fd:",
                "fdstore put triage bui",
                "fdstore ls nothing-like-i",
            ]
        }
    finally:
        bash.close()

    assert found == {
        "fdstore sea": "fdstore search",
        "fdstore read --pag": "fdstore read --pages",
        "fdstore ls tria": "fdstore ls triage",
        "fdstore cat triage fd:": "fdstore cat triage fd:1",
        "fdstore cat triage f": "fdstore cat triage fd:1",
        "fdstore pipe triage -i fd:": "fdstore pipe triage -i fd:1",
        "fdstore put triage bui": "fdstore put triage build.log",
        "fdstore ls nothing-like-i": "fdstore ls nothing-like-i",
    }
    assert not (tmp_path / "owned").exists()


def test_bash_completes_names_and_runs_nothing_in_them(command, store, tmp_path):
    proc = store.process("triage")
    for key in ("notes/plan=1.md", "notes/to do's.md", "漢字", "$(touch owned)", "hidden\u202eame"):
        proc.put(key, "x")
    bash = Bash(command, tmp_path)
    try:
        found = [
            bash.tab(line)
            for line in [
                "fdstore cat triage name:notes/p",
                "fdstore cat triage name:notes/plan=",
                "fdstore cat triage name:notes/t",
                r"fdstore cat triage name:notes/to\ d",
                "fdstore cat triage name:漢",
                "fdstore cat triage name:$",
                "fdstore cat triage name:h",
                "fdstore mv triage notes/p",
                "fdstore ls triage --names notes/t",
            ]
        ]
    finally:
        bash.close()

    assert found == [
        "fdstore cat triage name:notes/plan=1.md",
        "fdstore cat triage name:notes/plan=1.md",
        "fdstore cat triage name:notes/to do's.md",
        "fdstore cat triage name:notes/to do's.md",
        "fdstore cat triage name:漢字",
        "fdstore cat triage name:$(touch owned)",
        "fdstore cat triage name:h",
        "fdstore mv triage notes/plan=1.md",
        "fdstore ls triage --names notes/to do's.md",
    ]
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


def test_zsh_completions_describe_the_source_of_descriptors(command, store):
    store.process("triage").create("x", source="build\x1b[31m.log\nred")

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
