"""`fdstore top` and `fdstore log -f` at a terminal, as a user runs them."""

from __future__ import annotations

import signal

from fdstore.store.processes import processes
from tests.waiting import PATIENCE_S


def test_top_at_a_terminal_shows_the_processes_until_q(command, proc):
    proc.create("x" * 5000)
    with command.at_terminal("top") as (process, terminal):
        shown = terminal.until("triage")
        terminal.type("q")
        terminal.rest()
        process.wait(PATIENCE_S)

    assert "PROCESS" in shown
    assert process.returncode == 0


def test_log_follows_an_agent_until_it_is_interrupted(command, store):
    task = '{"kind":"brief","query":"Which test fails?"}'
    proc = store.process("triage")
    child = store.run(processes.create_child(proc.handle, [], state="ready", brief=task)).id

    with command.start("log", "-f", child) as follower:
        assert b"task      Which test fails?" in follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        _, err = follower.communicate(timeout=PATIENCE_S)

    assert (follower.returncode, err) == (130, b"")


def test_the_lines_above_the_tables_of_top_fit_a_narrow_terminal(command, proc):
    proc.create("x" * 5000)

    shown = command.on_terminal("top", "--once", columns=40)

    above = shown.out.partition("\n\n")[0]
    assert "workers: none is alive" in " ".join(above.split())
    assert max(map(len, above.split("\n"))) <= 40
