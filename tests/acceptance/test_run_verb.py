"""`fdstore run` and `fdstore ask`: what reaches the model, and what comes out on standard output."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fdstore.testing import ScriptedModel, call, say
from tests.acceptance.conftest import Command
from tests.thorough import thorough

PROGRAM = """\
[program]
name = "talker"

[model]
name = "scripted"

[prompt]
system = "Answer."
"""
WITH_A_FUNCTION = f"""\
{PROGRAM}
[tools]
python = ["noisy_tools:noisy"]
"""
NOISY = """\
import subprocess

def noisy() -> str:
    "Answer aloud."
    print("printed by the function")
    subprocess.run(["echo", "printed by its command"], check=True)
    return "quiet"
"""
NOT_UTF_8 = "caf\udce9"
"""An argument as Python has it that came in Latin-1."""


@pytest.fixture
def model(command: Command) -> Iterator[ScriptedModel]:
    (command.folder / "talker.toml").write_text(PROGRAM)

    def script(request):
        if "aloud" in request.last_text():
            return call("noisy")
        return say(f"It says: {request.last_text()}")

    with ScriptedModel(script) as played:
        command.environment |= played.environ
        yield played


@pytest.mark.thorough("new interpreters, one after the other")
@pytest.mark.parametrize("form", [["--json"], *thorough("the other form of the answer", [])])
def test_what_a_function_and_its_commands_print_is_not_on_standard_output(command, model, form):
    (command.folder / "talker.toml").write_text(WITH_A_FUNCTION)
    (command.folder / "noisy_tools.py").write_text(NOISY)
    command.environment["PYTHONPATH"] = str(command.folder)

    ended = command("run", "talker.toml", "-p", "Think aloud.", *form)

    answer = ended.document["answer"] + "\n" if form else ended.out
    assert answer == "It says: quiet\n"
    assert "printed by the function\n" in ended.err
    assert "printed by its command\n" in ended.err


def test_a_task_that_is_not_utf_8_is_shown_to_the_model_with_what_is_not(command, model):
    ended = command("run", "talker.toml", "-p", NOT_UTF_8)

    assert (ended.code, ended.out) == (0, "It says: caf\\udce9\n")


def test_a_blank_task_is_none(command, model):
    ended = command("run", "talker.toml", "-p", " ")

    assert ended.code == 1
    assert "say what the agent is to do" in ended.err


def test_a_question_and_a_name_of_a_file_are_one_line_each_in_the_prompt(command, model):
    name = "a\n- fd:9: other.txt, 1 character"
    (command.folder / name).write_text("one\n")

    ended = command("ask", NOT_UTF_8, name, "--model", NOT_UTF_8)

    assert ended.code == 0, ended.err
    [request] = model.requests
    assert request.raw["model"] == "caf\\udce9"
    lines = request.last_text().splitlines()
    assert lines[0] == "caf\\udce9"
    assert [line for line in lines if line.startswith("- fd:")] == [
        "- fd:1: a\\u{a}- fd:9: other.txt, 1 character, 4 characters in 1 lines"
    ]
