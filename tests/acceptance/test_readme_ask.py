"""The question of the README, with its command, its files and a program that finds its answer."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fdstore.cli.question_progress import AskProgress, format_end, format_line
from fdstore.testing import Reply, Request, ScriptedModel, call, element, say
from tests.documents import blocks_of

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
PARTS = 400
LINES = {"build.log": 64_000, "app.log": 40_000}
FAILED_LINE, EXHAUSTED = 62_880, 318

CODE = """
import asyncio, re
build, app = fd(1), fd(2)
parts = build.split(lines=320) + app.split(lines=200)
question = "Which errors are in this part? Answer with the words that the lines of one share, a line each."
answers = await asyncio.gather(*[ask(question, part) for part in parts])
found = []
for words in sorted({line for answer in answers for line in answer.splitlines() if line != "none"}):
    for log, name in ((app, "app.log"), (build, "build.log")):
        hits = log.search(re.escape(words))
        if len(hits) == 1:
            found.append(f'"{words}" ({name}, line {hits[0].line})')
        elif hits:
            found.append(f'"{words}" ({name}, {len(hits)} times from {hits[0].text[:5]} on)')
print("Two: " + " and ".join(reversed(found)) + ".")
"""


def logs() -> dict[str, str]:
    build = [f"cc src/{number}.c" for number in range(1, LINES["build.log"] + 1)]
    build[FAILED_LINE - 1] = "src/frame.c: fatal error: codec/tables.h: No such file"
    app = [f"{13 + n // 30_000:02d}:{n // 500 % 60:02d} GET /{n} 200" for n in range(LINES["app.log"])]
    first = next(number for number, line in enumerate(app) if line.startswith("14:02"))
    for number in range(first, first + 20 * EXHAUSTED, 20):
        app[number] = f"{app[number][:5]} ERROR pool exhausted, {number} waiting"
    return {name: "\n".join(lines) + "\n" for name, lines in (("build.log", build), ("app.log", app))}


def model(request: Request) -> Reply:
    if not request.tools:
        text = str(request.messages[0]["content"][0]["text"])
        errors = ("pool exhausted", "codec/tables.h: No such file")
        return say("\n".join(error for error in errors if error in text) or "none")
    if request.turn_number == 0:
        return call("run_python", code=CODE)
    return say(element(request.last_text(), "python_result").body)


def shown(begins: str) -> str:
    """Return the line of the README that begins so."""
    lines = [line for block in blocks_of(README) for line in block.text.splitlines()]
    [found] = [line for line in lines if line.startswith(begins)]
    return found


def varying(line: str) -> str:
    """Return the last line of a question without what differs between runs: tokens, time and name."""
    line = re.sub(r"[0-9,]+ tokens", "N tokens", line)
    return re.sub(r"ask-[a-z0-9]{6}", "ask-NAME", re.sub(r"asks, [^;]+;", "asks, TIME;", line))


@pytest.mark.thorough("the command is tested with forty questions")
def test_the_question_of_the_readme_has_its_answer_and_prints_its_lines(command):
    for name, text in logs().items():
        (command.folder / name).write_text(text)
    line = shown('fdstore ask "')

    with ScriptedModel(model) as played:
        command.environment |= played.environ
        ended = command(*shlex.split(line)[1:])

    assert ended.code == 0, ended.err
    assert ended.out == shown("Two: ") + "\n"
    assert varying(ended.err.splitlines()[-1]) == varying(shown("fdstore: 2,301,940"))


def test_the_progress_of_the_readme_is_as_it_is_printed():
    half = AskProgress(asked=PARTS, done=212, tokens=1_204_118, seconds=15)
    end = AskProgress(asked=PARTS, done=PARTS, tokens=2_301_940, seconds=31.8)

    assert shown("fdstore: asks ") == f"fdstore: {format_line(half)}"
    assert shown("fdstore: 2,301,940").startswith(f"fdstore: {format_end(end)}; to ask more: ")
