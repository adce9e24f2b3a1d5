"""Code that a person runs: Ctrl-C ends it, whenever it comes."""

from __future__ import annotations

import os
import signal
import threading

import pytest

import fdstore
from fdstore.cli.python import _run
from fdstore.programs.console import Console
from fdstore.tools.built_in.run_python import starters_for
from fdstore.toolset.build import context_for, do_nothing

ENDLESS = "while True: pass"


@pytest.fixture
def console(store: fdstore.Store) -> Console:
    handle = store.process("triage").handle
    context = context_for(
        handle, store.prefix, enabled=["run_python"], config=None, linked={}, wake=do_nothing, ask=None
    )
    return Console(context, starters_for(context), keeps=True)


def test_code_that_is_interrupted_before_it_begins_ends(store: fdstore.Store, console: Console) -> None:
    operation = console.run(ENDLESS)
    console.interrupt()

    assert "ended from outside" in str(store.run(operation).error)
    assert store.run(console.run("1 + 1")).value == "2"


def test_ctrl_c_in_the_first_statements_of_a_run_ends_it_and_the_next_one_runs(
    store: fdstore.Store, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        real_start(thread)
        os.kill(os.getpid(), signal.SIGINT)

    real_start = threading.Thread.start
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(KeyboardInterrupt):
            _run(store, "triage", console, ENDLESS)

    assert _run(store, "triage", console, "1 + 1").value == "2"
