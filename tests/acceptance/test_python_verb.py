"""`fdstore python`: the interpreter over the texts of a process, once and at a prompt."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import fdstore
from fdstore.testing import Request, ScriptedModel, call, say
from tests.acceptance.conftest import Command, Terminal
from tests.children import Child
from tests.waiting import PATIENCE_S, wait_until


def test_what_is_printed_and_the_last_value_are_shown_and_variables_stay(command, proc):
    proc.create("one\ntwo\n")

    first = command("python", "triage", "-c", "log = fd(1)\nprint(log.line(2), end='')\nlog.total_lines")
    second = command("python", "triage", "-c", "log.line(1)")

    assert (first.out, first.err, first.code) == ("two\n2\n", "", 0)
    assert second.out == "'one\\n'\n"


def test_an_error_of_the_code_is_on_stderr_and_what_was_assigned_before_it_stays(command, proc):
    failed = command("python", "triage", "-c", "x = 4\nprint(x)\nx / 0")

    assert (failed.out, failed.code) == ("4\n", 1)
    assert "ZeroDivisionError" in failed.err
    assert "x / 0" in failed.err
    assert "python_result" not in failed.err
    assert command("python", "triage", "-c", "x").out == "4\n"


def test_code_comes_from_a_file_or_from_standard_input(command, proc):
    (command.folder / "code.py").write_text("import re\nprint(re.sub('a', 'b', 'aa'))\n")

    assert command("python", "triage", "code.py").out == "bb\n"
    assert command("python", "triage", "-", stdin=b"print('piped')\n").out == "piped\n"
    assert command("python", "triage", stdin=b"2 * 21\n").out == "42\n"
    assert command("python", "triage", "gone.py").err.startswith("fdstore: file_not_found")
    assert command("python", "triage", "code.py", "-c", "1").code == 2


def test_with_json_the_parts_of_the_result_are_apart(command, proc):
    good = command("python", "triage", "-c", "print('said')\n7", "--json").document
    failed = command("python", "triage", "-c", "print('said')\n1 / 0", "--json")

    assert (good["printed"], good["value"], good["error"]) == ("said\n", "7", None)
    assert failed.code == 1
    assert "ZeroDivisionError" in failed.document["error"]


@pytest.mark.thorough("several commands, one after the other")
def test_a_process_that_has_ended_is_looked_at_and_not_changed(command, proc):
    command("python", "triage", "-c", "x = 1")
    proc.end()

    changed = command("python", "triage", "-c", "y = 2\ny")

    assert changed.out == "2\n"
    assert "NameError" in command("python", "triage", "-c", "y").err
    assert "NameError" in command("python", "triage", "-c", "x").err  # let go of with what it held
    assert command("python", "triage", "-c", "create('text')").code == 1
    assert command("python", "nowhere", "-c", "1").err.startswith("fdstore: not_found")


@pytest.mark.thorough("a worker of its own")
def test_code_asks_the_model_that_is_named(command, proc):
    proc.create("a\nb\nc\n")
    code = (
        "import asyncio\nawait asyncio.gather(*[ask('Which letter?', part) for part in fd(1).split(lines=1)])"
    )

    def model(request: Request) -> object:
        return say(str(request.messages[0]["content"][0]["text"]).split()[-1])

    with ScriptedModel(model) as played:
        command.environment |= played.environ
        asked = command("python", "triage", "-c", code, "--ask-model", "small")
        refused = command("python", "triage", "-c", code)

    assert asked.out == "['a', 'b', 'c']\n", asked.err
    assert {request.raw["model"] for request in played.requests} == {"small"}
    assert "no model is named" in refused.err


def test_code_runs_commands_on_a_worker_and_reads_what_they_write(command, proc):
    proc.create("b\na\nb\n")

    counted = command(
        "python", "triage", "-c", "r = await pipe([['sort'], ['uniq', '-c']], fd(1))\nprint(r.fd.text())"
    )
    part = command("python", "triage", "-c", "(await pipe([['wc', '-l']], fd('fd:1#L1-2'))).fd.text()")
    code = command("python", "triage", "-c", "r.exit_code, (await pipe([['false']])).exit_code")

    assert counted.out.split() == ["1", "a", "2", "b"], counted.err
    assert part.out == "'2\\n'\n", part.err
    assert code.out == "(0, 1)\n", code.err


@pytest.mark.thorough("a worker of its own")
def test_a_command_that_the_worker_does_not_allow_is_an_exception_in_code(command, proc, start_worker):
    proc.create("b\na\n")
    code = "try:\n    await pipe([['sort']], fd(1))\nexcept PermissionError as error:\n    print(error)"

    with start_worker("--allow-command", "grep"):
        refused = command("python", "triage", "-c", code)
        found = command("python", "triage", "-c", "(await pipe([['grep', 'a']], fd(1))).fd.text()")

    assert refused.out.startswith("permission_error: the command 'sort' is not allowed on this worker")
    assert found.out == "'a\\n'\n", found.err


READER = """\
[model]
name = "small"

[tools]
enabled = ["read_fd"]
"""


def test_code_starts_agents_of_linked_programs(command, proc):
    proc.create("a text\n")
    (command.folder / "reader.toml").write_text(READER)
    code = "r = await spawn('reader', 'Which words?', fd(1))\nprint(r.answer, r.exit_code)"

    def model(request: Request) -> object:
        if request.turn_number == 0:
            return call("read_fd", fd="fd:1")
        return say("the words" if "a text" in request.last_text() else "nothing")

    with ScriptedModel(model) as played:
        command.environment |= played.environ
        answered = command("python", "triage", "--link", "reader=reader.toml", "-c", code)
        other = command(
            "python", "triage", "--link", "reader=reader.toml", "-c", "await spawn('writer', 'Write.')"
        )

    assert answered.out == "the words 0\n", answered.err
    assert "there is no program 'writer'; there are: reader" in other.err


@pytest.mark.thorough("a worker of its own")
def test_an_agent_that_code_starts_asks_the_person_at_the_terminal(command, proc):
    asking = READER.replace('["read_fd"]', "[]") + "[people]\nask = true\n"
    (command.folder / "asker.toml").write_text(asking)
    code = "r = await spawn('asker', 'Ask.')\nprint('It says', r.answer)"
    link = ("--link", "asker=asker.toml")

    def model(request: Request) -> object:
        if request.turn_number == 0:
            return call("ask_person", question="Which colour?", choices=["red", "blue"])
        return say("blue" if "blue" in request.last_text() else "green")

    with ScriptedModel(model) as played:
        command.environment |= played.environ
        with command.at_terminal("python", "triage", *link, "-c", code) as (process, terminal):
            terminal.until("Answer: ")
            terminal.type("2\n")
            shown = terminal.until("It says blue")
            process.wait(PATIENCE_S)
            terminal.close()

    assert "answered" in shown
    assert process.returncode == 0


def test_an_agent_without_a_linked_program_names_the_option(command, proc):
    (command.folder / "reader.toml").write_text(READER)

    unlinked = command("python", "triage", "-c", "await spawn('reader', 'Read.')")
    unnamed = command("python", "triage", "-c", "1", "--link", "reader.toml")
    twice = command("python", "triage", "-c", "1", "--link", "a=reader.toml", "--link", "a=reader.toml")
    missing = command("python", "triage", "-c", "1", "--link", "a=gone.toml")

    assert "no programs are linked; start with --link NAME=FILE.toml" in unlinked.err
    assert (unnamed.code, twice.code) == (2, 2)
    assert "'reader.toml' is not NAME=FILE.toml" in unnamed.err
    assert "'a' names two programs" in twice.err
    assert "the file 'gone.toml' does not exist" in missing.err


def test_a_store_without_workers_is_an_error_in_code_that_says_what_to_start(command, redis_url):
    command.environment["FDSTORE_URL"] = redis_url
    with fdstore.connect(redis_url, command.environment["FDSTORE_PREFIX"]) as store:
        store.process("triage").create("a\n")

        piped = command("python", "triage", "-c", "await pipe([['sort']], fd(1))")
        store.drop_tree("triage", kill=True)

    assert piped.code == 1
    assert "no_worker: no worker takes processes of this store" in piped.err


def test_ctrl_c_ends_a_pipeline_that_a_prompt_waits_for(command, store, proc, start_worker):

    def pipelines() -> list[str]:
        return [each.state for each in store.tree("triage").members if each.kind == "pipeline"]

    with start_worker():
        with prompt(command) as (process, terminal):
            terminal.type("await pipe([['sleep', '1000']])\n")
            wait_until(lambda: pipelines() == ["running"])
            process.send_signal(signal.SIGINT)
            terminal.until("KeyboardInterrupt")
            terminal.until(">>> ")
        wait_until(lambda: pipelines() == ["cancelled"])


@contextmanager
def prompt(command: Command) -> Iterator[tuple[Child[bytes], Terminal]]:
    """`fdstore python` at a terminal, until Ctrl-D."""
    command.environment["TERM"] = "dumb"
    with command.at_terminal("python", "triage") as (process, terminal):
        terminal.until(">>> ")
        yield process, terminal
        terminal.type("\x04")
        assert process.wait(PATIENCE_S) == 0
    terminal.close()


def test_a_prompt_takes_several_lines_and_survives_ctrl_c(command, proc):
    proc.create("one\ntwo\n")

    with prompt(command) as (process, terminal):
        terminal.type("for number in range(2):\n")
        terminal.until("... ")
        terminal.type("    print('number', number)\n")
        terminal.until("... ")
        terminal.type("\n")
        terminal.until("number 0\r\nnumber 1\r\n>>> ")
        terminal.type("kept = 3\n")
        terminal.until(">>> ")
        terminal.type("while True: kept\n")
        terminal.until("... ")
        terminal.type("\n")
        terminal.until("\n")
        process.send_signal(signal.SIGINT)
        terminal.until("KeyboardInterrupt")
        terminal.until(">>> ")
        terminal.type("while True: kept\n\n")
        terminal.until("... ")
        wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) > 1)
        process.signal_beside_main(signal.SIGINT)
        terminal.until("KeyboardInterrupt")
        terminal.until(">>> ")
        terminal.type("kept + 1\n")
        terminal.until("4\r\n>>> ")
        terminal.type("1 / 0\n")
        terminal.until("ZeroDivisionError")
        terminal.until(">>> ")

    assert command("python", "triage", "-c", "kept").out == "3\n"
    assert "kept = 3" in (command.data_dir / "python_history").read_text()


def test_a_prompt_survives_code_that_is_nested_too_deeply_and_ends_by_exit(command, proc):
    command.environment["TERM"] = "dumb"
    with command.at_terminal("python", "triage") as (process, terminal):
        terminal.until(">>> ")
        terminal.type("-" * 3000 + "1\n")
        terminal.until("SyntaxError: Source is too deeply nested")
        terminal.until(">>> ")
        terminal.type("x = 3; exit()\n")
        assert process.wait(PATIENCE_S) == 0
        terminal.close()

    assert command("python", "triage", "-c", "x").out == "3\n"


@pytest.mark.parametrize(("line", "code"), [("quit()", 0), ("exit('no data')", 1)])
def test_a_prompt_ends_as_the_code_says(command, proc, line: str, code: int):
    command.environment["TERM"] = "dumb"
    with command.at_terminal("python", "triage") as (process, terminal):
        terminal.until(">>> ")
        terminal.type(f"{line}\n")
        if code:
            terminal.until("SystemExit: no data")
        assert process.wait(PATIENCE_S) == code
        terminal.close()
