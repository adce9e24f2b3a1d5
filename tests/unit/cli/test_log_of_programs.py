"""A program that a model wrote is shown in `fdstore log` as it wrote it, line by line."""

from __future__ import annotations

from fdstore.cli.log_lines import entry_lines
from fdstore.inspector.reading.entries import ConversationEntry


def lines_of(**arguments: object) -> list[str]:
    entry = ConversationEntry(position=1, part=0, kind="call", tool="run_python", arguments=arguments, at=0.0)
    return [line[31:] for line in entry_lines(entry)]


def test_the_lines_of_a_program_are_lines_of_the_log():
    assert lines_of(code="\nlog = fd(1)\nprint(log)\n") == ["run_python", "log = fd(1)", "print(log)"]


def test_a_call_without_code_is_shown_as_other_calls():
    assert lines_of(text="x") == ['run_python(text="x")']
    assert lines_of(code=7) == ["run_python(code=7)"]
