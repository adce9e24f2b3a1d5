"""fdstore questions, answer, and a run at a terminal: what an agent asks reaches a person, and back."""

from __future__ import annotations

import threading

import pytest

from fdstore.store.processes import people, questions
from fdstore.testing import ScriptedModel, call, say
from tests.waiting import PATIENCE_S, wait_until

PROGRAM = """
[model]
name = "any"
[people]
ask = true
approve = ["write_fd"]
[tools]
enabled = ["write_fd"]
"""
HOSTILE = "Which?\nfdstore: approved \x1b[2J\u202e"


def ask(store, slot="turn1:a", **fields):
    question = people.StoredQuestion(**{"kind": "question", "text": HOSTILE, "timeout_s": 3600.0, **fields})
    return store.run(questions.ask(store.process("triage").handle, slot, question)).number


def approval(store, slot="turn1:b"):
    arguments = questions.write_arguments({"path": "a", "text": "\x1b[31m"})
    return ask(store, slot, kind="approval", text="", tool="deploy", arguments=arguments)


def test_questions_are_listed_with_the_way_to_answer(command, store):
    assert command("questions").out == ""
    ask(store, choices=("red", "blue"), fd="fd:1")

    shown = command("questions")

    assert "triage asks (question 1, for" in shown.out
    assert "\n  | Which?\n  | fdstore: approved \\u{1b}[2J\\u{202e}\n" in shown.out
    assert "\n  1 | red\n  2 | blue\n" in shown.out
    assert "fdstore answer triage --question 1 'TEXT', or --choice N" in shown.out
    assert not any(line.startswith("fdstore: approved") for line in shown.lines)
    assert command("questions", "triage", "--json").document["text"] == HOSTILE
    assert command("questions", "other").code == 1

    approval(store)
    both = command("questions")
    assert 'may deploy run with {"path": "a", "text": "\\u001b[31m"}?' in both.out
    assert "\x1b" not in both.out


def test_a_question_is_answered_once(command, store):
    ask(store, choices=("red", "blue"))

    done = command("answer", "triage", "--choice", "2", "--as", "ann", "--json")
    again = command("answer", "triage", "red", "--question", "1", "--as", "bob")

    assert (done.document["text"], done.document["by"], done.document["door"]) == ("blue", "ann", "cli")
    assert again.code == 1
    assert "conflict: question 1 of triage takes no answer: 'ann' answered it already" in again.err
    assert command("answer", "triage", "red").code == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--yes"], "triage: approved\n"),
        (["--no", "--reason", "not today"], "triage: denied; the call is not run\n"),
        (["--yes", "--arguments", '{"path": "b"}'], "triage: approved, with other arguments\n"),
    ],
)
def test_a_call_is_approved_denied_or_changed(command, store, given, said):
    approval(store)

    assert command("answer", "triage", *given).out == said


@pytest.mark.parametrize(
    ("given", "code"),
    [([], 1), (["yes"], 1), (["--yes", "--arguments", "{"], 2), (["--yes", "--arguments", "[]"], 2)],
)
def test_a_wrong_answer_leaves_the_question_open(command, store, given, code):
    approval(store)

    assert command("answer", "triage", *given).code == code
    assert len(store.questions()) == 1


def test_a_run_without_a_terminal_says_how_to_answer(command, store, tmp_path):
    (tmp_path / "agent.toml").write_text(PROGRAM)
    asks = call("ask_person", question=HOSTILE, choices=["red", "blue"])
    with ScriptedModel([asks, say("Done.")]) as model:
        command.environment |= model.environ
        ended = []
        running = threading.Thread(
            target=lambda: ended.append(command("run", "agent.toml", "-p", "go", "--name", "triage"))
        )
        running.start()
        wait_until(lambda: store.questions(), what="a question")
        assert command("answer", "triage", "green", "--as", "ann").code == 0
        running.join()

    [run] = ended
    assert (run.code, run.out) == (0, "Done.\n")
    log = command("log", "triage")
    assert "by ann (cli)" in log.out


def test_a_run_at_a_terminal_asks_there(command, store, tmp_path):
    (tmp_path / "agent.toml").write_text(PROGRAM)
    asks = call("ask_person", question=HOSTILE, choices=["red", "blue"])
    first, second = (call("write_fd", data=f"{word} one") for word in ("a", "b"))
    with ScriptedModel([asks, first, second, say("Done.")]) as model:
        command.environment |= model.environ | {"EDITOR": "sed -i s/one/two/"}
        with command.at_terminal("run", "agent.toml", "-p", "go", "--name", "triage") as (process, terminal):
            shown = terminal.until("Answer: ")
            terminal.type("2\n")
            terminal.until("leave it: ")
            terminal.type("e\n")
            terminal.until("approved, with other arguments")
            terminal.until("leave it: ")
            terminal.type("n\n")
            terminal.until("no reason: ")
            terminal.type("Not this one.\n")
            terminal.until("denied")
            terminal.until("Done.")
            process.wait(PATIENCE_S)
            terminal.close()

    assert "\x1b" not in shown
    assert "  | fdstore: approved \\u{1b}[2J\\u{202e}\r\n" in shown
    assert process.returncode == 0
    assert store.process("triage").read("fd:1").text == "a two"
    log = command("log", "triage").out
    assert "(terminal)" in log
    assert "Not this one." in log, log


def test_what_was_typed_before_a_prompt_or_spoilt_by_an_editor_approves_nothing(command, store, tmp_path):
    (tmp_path / "agent.toml").write_text(PROGRAM)
    asks, writes = call("ask_person", question="Which?", choices=["red", "blue"]), call("write_fd", data="a")
    with ScriptedModel([asks, writes, say("Done.")]) as model:
        command.environment |= model.environ | {"EDITOR": "sh -c 'printf \"\\377\" >$0'"}
        with command.at_terminal("run", "agent.toml", "-p", "go", "--name", "triage") as (process, terminal):
            terminal.until("Answer: ")
            terminal.type("9\ny\n")
            terminal.until("no such choice")
            terminal.until("Answer: ")
            terminal.type("2\ny\n")
            terminal.until("leave it: ")
            terminal.type("e\n")
            terminal.until("utf-8")
            terminal.until("leave it: ")
            terminal.type("n\n")
            terminal.until("no reason: ")
            terminal.type("\n")
            terminal.until("Done.")
            process.wait(PATIENCE_S)
            terminal.close()

    assert store.process("triage").list() == []
    assert "blue" in command("log", "triage").out
