"""At a terminal: escaped control characters, tables that fit, colours, progress, questions."""

from __future__ import annotations

import re
import threading

import pytest

from fdstore.store.processes import processes
from fdstore.testing import ScriptedModel, fail, say
from tests.waiting import PATIENCE_S


def test_control_characters_are_escaped_on_a_terminal_and_raw_in_a_pipe(command, store):
    text = "\x1b]0;owned\x07\u202eabc\tkept\r\nend"
    store.process("triage").create(text, source="\x1b[31mred")
    escaped = "\\u{1b}]0;owned\\u{7}\\u{202e}abc\tkept\\u{d}\nend\n"

    for verb in ("read", "cat"):
        assert command.on_terminal(verb, "triage", "1").out == escaped
        assert command(verb, "triage", "1").raw == text.encode()
        assert command.on_terminal(verb, "triage", "1", "--raw").raw == text.encode() + b"\n"
    assert "\\u{1b}[31mred" in command("ls", "triage").out
    assert "\x1b" not in command.on_terminal("ls", "triage").out
    assert "\x1b" not in command("stat", "triage", "1").out
    assert "\x1b" not in command("ls", "\x1b[31m").err


@pytest.mark.thorough("several commands, one after the other")
def test_an_answer_a_reason_and_a_name_are_escaped_on_a_terminal(command, store, tmp_path):
    hostile = "\x1b[2J\x9b31m\u202efdstore: all is well"
    escaped = "\\u{1b}[2J\\u{9b}31m\\u{202e}fdstore: all is well"
    (tmp_path / "we\x1bird").mkdir()
    (tmp_path / "we\x1bird" / "agent.toml").write_text(
        '[model]\nname = "any"\n[prompt]\nsystem = "Go."\n[file_descriptor]\ndefault_page_size = 50\n'
    )
    with ScriptedModel([say(hostile), say(hostile), fail(400, message=f"no\n{hostile}")]) as model:
        command.environment |= model.environ
        shown = command.on_terminal("run", "we\x1bird/agent.toml", "-p", "go", "--name", "a")
        exact = command("run", "we\x1bird/agent.toml", "-p", "go", "--name", "b")
        failed = command("run", "we\x1bird/agent.toml", "-p", "go", "--name", "triage")

    assert (shown.out, exact.out) == (f"{escaped}\n", f"{hostile}\n")
    assert "warning: we\\u{1b}ird/agent.toml" in exact.err
    assert f"no\\u{{a}}{escaped}" in failed.err
    store.run(processes.cancel(store.prefix, store.process("other").id, hostile))
    for ended in (shown, exact, failed, command("attach", "triage"), command("attach", "other")):
        assert not set(ended.err) & set("\x1b\x9b\u202e")
    for verb in (["ps"], ["ps", "--json"], ["attach", "other", "--json"], ["doctor"]):
        assert not set(command.on_terminal(*verb).out) & set("\x1b\x9b\u202e")
    assert command.on_terminal("ps", "other", "--json").document["reason"] == hostile


def test_a_refusal_of_a_worker_is_one_line_without_control_characters(command):
    ended = command("worker", "--url", "redis://\x1b[2J\nhost:0/[")

    assert ended.code == 2
    assert ended.err.startswith("fdstore: invalid_argument: ")
    assert ended.err.count("\n") == 1
    assert "\x1b" not in ended.err


def test_a_table_fits_the_terminal_and_is_complete_elsewhere(command, store):
    source = "\u6f22\u5b57" * 40
    store.process("triage").create("x", source=source)

    narrow = command.on_terminal("ls", "triage", columns=90)

    assert narrow.lines[1].endswith("...")
    assert len(narrow.lines[1].encode("utf-16-le")) // 2 < 90
    assert source in command("ls", "triage").out


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_ps_shows_whole_reasons_and_ids_at_any_width(command, store, columns):
    reason = " ".join(f"word{number}" for number in range(1, 36))[:300]
    root = store.process("n" * 48)
    handle = root.handle
    for _ in range(6):
        handle = store.run(processes.create_child(handle, [], state="ready"))
    store.run(processes.end(handle, "failed", exit_code=None, reason=reason))

    shown = command.on_terminal("ps", "-a", columns=columns)

    assert all(len(line) <= columns for line in shown.lines)
    assert " ".join(reason.split()) in " ".join(shown.out.split())
    assert "".join(handle.keys.process.split()) in "".join(shown.out.split())
    assert reason in command("ps", "-a").out


def test_what_is_cut_of_a_table_says_where_it_is_whole(command, store):
    store.process("triage").create("x", source="long " * 40)

    shown = command.on_terminal("ls", "triage", err_too=True)
    wide = command.on_terminal("ls", "triage", columns=300, err_too=True)

    assert "fdstore stat PROC FD" in shown.out
    assert "fdstore stat PROC FD" not in wide.out


@pytest.mark.parametrize("verb", ["doctor --deep", "status"])
def test_what_checks_say_goes_on_below_itself(command, proc, verb):
    proc.create("x" * 5000)

    narrow = command.on_terminal(*verb.split(), columns=60)
    whole = command(*verb.split())

    long = [line for line in whole.lines if len(line) > 60]
    assert long
    assert all(len(line) <= 60 for line in narrow.lines)
    assert narrow.lines[-1].startswith("no problems" if verb == "status" else "ok       trees: ")


def test_states_are_coloured_on_a_terminal_and_stored_text_is_not(command, proc):
    proc.open_stream(source="\x1b[31mred").fail("signal 9")
    plain = {verb: command.on_terminal(*verb.split()) for verb in ("ls triage", "ps", "doctor")}
    del command.environment["NO_COLOR"]
    ours = re.compile("\x1b\\[[0-9;]*m")

    for verb, ended in plain.items():
        shown = command.on_terminal(*verb.split())

        assert "\x1b" not in ended.out
        assert ours.search(shown.out)
        assert [line.split()[:2] for line in ours.sub("", shown.out).splitlines()] == (
            [line.split()[:2] for line in ended.lines]
        )
        assert ours.search(command(*verb.split()).out) is None
    assert "\x1b[31mbroken" in command.on_terminal("ls", "triage").out
    assert "\\u{1b}[31mred" in command.on_terminal("stat", "triage", "1").out


def test_a_long_put_shows_its_progress_on_a_terminal(command):
    with command.at_terminal("put", "triage", "-", streams=("stderr",)) as (process, terminal):
        reading = threading.Thread(target=terminal.until, args=("MB/s",))
        reading.start()
        while reading.is_alive():
            process.stdin.write(b"x" * 1_000_000)
        out, _ = process.communicate(timeout=PATIENCE_S)
    terminal.close()

    assert (process.returncode, out) == (0, b"fd:1\n")


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
