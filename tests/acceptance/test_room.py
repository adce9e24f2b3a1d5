"""Removing a tree at a terminal asks for confirmation."""

from __future__ import annotations

import pytest

from tests.waiting import PATIENCE_S


@pytest.mark.parametrize(("answer", "left"), [("y\n", []), ("\n", ["triage"])])
def test_rm_of_a_tree_asks_for_confirmation_on_a_terminal(command, store, proc, answer, left):
    proc.create("x" * 5000)
    with command.at_terminal("rm", "--tree", "triage", streams=("stdin", "stderr")) as (process, terminal):
        asked = terminal.until("[y/N]")
        terminal.type(answer)
        process.communicate(timeout=PATIENCE_S)
    terminal.close()

    assert "Permanently remove the tree triage, 1 process and 1 content with 5.0 kB? " in asked
    assert process.returncode == (1 if left else 0)
    assert [tree.id for tree in store.trees()] == left
