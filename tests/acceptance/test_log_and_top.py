"""`fdstore top` and `fdstore log -f` at a terminal, as a user runs them."""

from __future__ import annotations

import os
import signal

from fdstore.store.processes import processes
from tests.waiting import PATIENCE_S


def read_until(terminal: int, awaited: bytes) -> bytes:
    shown = b""
    while awaited not in shown:
        shown += os.read(terminal, 65536)
    return shown


def test_top_at_a_terminal_shows_the_processes_until_q(command, store):
    store.process("triage").create("x" * 5000)
    terminal, theirs = os.openpty()

    with command.start("top", stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = read_until(terminal, b"triage")
        os.write(terminal, b"q")
        try:
            while os.read(terminal, 65536):
                pass
        except OSError:
            pass  # it has closed the terminal
        process.wait(PATIENCE_S)
    os.close(terminal)

    assert b"PROCESS" in shown
    assert process.returncode == 0


def test_log_follows_an_agent_until_it_is_interrupted(command, store):
    brief = '{"kind":"brief","query":"Which test fails?"}'
    proc = store.process("triage")
    child = store.run(processes.create_child(proc.handle, [], state="ready", brief=brief)).id

    with command.start("log", "-f", child) as follower:
        assert b"task      Which test fails?" in follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        _, err = follower.communicate(timeout=PATIENCE_S)

    assert (follower.returncode, err) == (130, b"")


def test_tail_follows_a_stream_until_it_is_interrupted(command, store):
    with store.process("triage").open_stream("build") as out:
        out.write("line 1\n")
        out.flush()

        with command.start("tail", "-f", "triage", out.fd) as follower:
            assert follower.stdout.readline() == b"line 1\n"
            follower.send_signal(signal.SIGINT)
            _, err = follower.communicate(timeout=PATIENCE_S)

    assert (follower.returncode, err) == (130, b"")
