"""Removing a tree at a terminal asks for confirmation."""

from __future__ import annotations

import os

import pytest

from tests.waiting import PATIENCE_S


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", []), (b"\n", ["triage"])])
def test_rm_of_a_tree_asks_for_confirmation_on_a_terminal(command, store, answer, left):
    store.process("triage").create("x" * 5000)
    terminal, theirs = os.openpty()

    with command.start("rm", "--tree", "triage", stdin=theirs, stderr=theirs) as process:
        os.close(theirs)
        asked = b""
        while b"[y/N]" not in asked:
            asked += os.read(terminal, 4096)
        os.write(terminal, answer)
        process.communicate(timeout=PATIENCE_S)
    os.close(terminal)

    assert b"Permanently remove the tree triage, 1 process and 1 content with 5.0 kB? [y/N]" in asked
    assert process.returncode == (1 if left else 0)
    assert [tree.id for tree in store.trees()] == left
