"""`fdstore ask`: a question about files, with a scripted model and a real worker."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import signal
import threading
from collections.abc import Iterator

import pytest

from fdstore.testing import Reply, Request, ScriptedModel, call, element, fail, say
from tests.acceptance.conftest import Command
from tests.thorough import thorough
from tests.waiting import PATIENCE_S

PARTS = 40
LINES = "".join(f"{'ERROR' if number % 100 == 7 else 'fine'} {number}\n" for number in range(4000))

COUNT = f"""
import asyncio
log = fd("fd:1")
parts = log.split(lines={4000 // PARTS})
answers = await asyncio.gather(*[ask("How many errors?", part) for part in parts])
total = sum(int(answer) for answer in answers)
note = create("counted by part")
print(len(answers), total)
"""


def question_of(request: Request) -> str:
    content = request.messages[0]["content"]
    return content if isinstance(content, str) else "\n".join(block["text"] for block in content)


ALL_FAIL = """
import asyncio
asked = [ask("Fail?", part) for part in fd("fd:1").split(lines=2000)]
answers = await asyncio.gather(*asked, return_exceptions=True)
print(sum(isinstance(each, Exception) for each in answers), "failed")
"""


def model_of(request: Request) -> Reply:
    if not request.tools and "Fail?" in question_of(request):
        return fail(400, message="no")
    if not request.tools:
        return say(str(question_of(request).count("ERROR ")))
    question = question_of(request)
    if request.turn_number == 0 and question.startswith("Count"):
        return call("run_python", code=COUNT)
    if request.turn_number == 0 and question.startswith("Fail"):
        return call("run_python", code=ALL_FAIL)
    if request.turn_number == 0 and question.startswith("Recall"):
        code = "print(total, note.text(), [text.source for text in fds()])"
        return call("run_python", code=code)
    if question.startswith("Refuse"):
        return fail(400, message="no")
    if request.turn_number:
        return say(f"It says: {element(request.last_text(), 'python_result').body}")
    return say("Nothing to do.")


@pytest.fixture
def model(command: Command) -> Iterator[ScriptedModel]:
    (command.folder / "build.log").write_text(LINES)
    with ScriptedModel(model_of) as played:
        command.environment |= played.environ
        yield played


def trees(command: Command) -> list[str]:
    return [each["id"] for each in command("ps", "--json").documents]


def test_the_answer_alone_is_on_stdout_and_what_it_took_on_stderr(command, model):
    command.environment["FDSTORE_PRICES"] = "big=3,15,USD small=1,5,USD"

    ended = command(
        *("ask", "Count the errors.", "build.log", "--name", "manuals"),
        *("--model", "big", "--ask-model", "small"),
    )

    assert ended.code == 0, ended.err
    assert ended.out == "It says: 40 40\n"
    last = ended.err.splitlines()[-1]
    assert re.fullmatch(
        r"fdstore: [0-9,]+ tokens, [0-9.]+ USD, 40 asks, [^;]+; "
        r'to ask more: fdstore ask --continue manuals "\.\.\."',
        last,
    )
    models = [request.raw["model"] for request in model.requests]
    assert sorted(set(models)) == ["big", "small"]
    assert models.count("small") == PARTS


@pytest.mark.thorough("several commands, one after the other")
def test_a_question_that_continues_has_the_texts_and_variables_of_the_first_and_new_files(command, model):
    (command.folder / "more.txt").write_text("more\n")
    command("ask", "Count the errors.", "build.log", "--name", "manuals")

    ended = command("ask", "--continue", "manuals", "Recall it.", "more.txt")
    again = command("ask", "--continue", "manuals.2", "Recall it again.")

    assert ended.code == 0, ended.err
    assert ended.out == "It says: 40 counted by part ['build.log', 'run_python', 'more.txt']\n"
    assert again.out == ended.out
    asked = next(text for text in map(question_of, model.requests) if text.startswith("Recall it."))
    assert "- fd:1: build.log, 38930 characters in 4000 lines" in asked
    assert "- Count the errors.\n  It says: 40 40" in asked
    assert re.search(r"Variables from then are there: .*\bnote\b.*\btotal\b", asked)
    told = next(text for text in map(question_of, model.requests) if text.startswith("Recall it again."))
    assert "- Recall it.\n" in told


def test_with_json_there_is_one_document(command, model):
    ended = command("ask", "Count the errors.", "build.log", "--name", "manuals", "--json")

    document = ended.document
    assert document["answer"] == "It says: 40 40"
    assert document["texts"] == "manuals"
    assert document["process"]["id"] == "manuals.1"
    assert document["taken"]["asked"] == document["taken"]["done"] == PARTS
    assert document["taken"]["tokens"] > document["process"]["input_tokens"]


def test_a_detached_question_is_answered_by_workers(command, model):
    detached = command("ask", "Count the errors.", "build.log", "--name", "manuals", "--detach")
    watched = command("attach", "manuals.1")
    kept = command("python", "manuals", "-c", "print(total, note.text())")

    assert (detached.out, detached.code) == ("manuals.1\n", 0)
    assert watched.out == "It says: 40 40\n"
    assert kept.out == "40 counted by part\n"


@pytest.mark.thorough("files have tests of their own")
def test_standard_input_is_a_text_too(command, model):
    ended = command("ask", "Count the errors.", "-", "--name", "manuals", "-q", stdin=LINES.encode())

    assert ended.out == "It says: 40 40\n"
    assert ended.err == ""
    assert command("ls", "manuals", "--json").documents[0]["source"] == "stdin"


@pytest.mark.thorough("limits of trees have tests of their own")
def test_a_budget_ends_the_question_and_more_of_it_goes_on(command, model):
    ended = command(
        *("ask", "Count the errors.", "build.log", "--name", "manuals", "--budget", "5k", "--model", "m")
    )
    more = command("ask", "--continue", "manuals", "Count the errors.", "--budget", "100k")

    assert ended.code == 1
    assert ended.out == ""
    assert "tree_token_budget" in ended.err
    assert more.out == "It says: 40 40\n", more.err


def test_a_model_that_refuses_is_named_with_its_reason(command, model):
    ended = command("ask", "Refuse.", "build.log", "--name", "manuals")

    assert (ended.code, ended.out) == (1, "")
    assert "fdstore: manuals.1 failed: " in ended.err


@pytest.mark.parametrize("more", [["--json"], *thorough("other forms of the answer", [], ["--quiet"])])
def test_an_answer_whose_asks_all_failed_is_given_with_a_warning(command, model, more):
    ended = command("ask", "Fail, all of you.", "build.log", "--name", "manuals", *more)

    assert ended.code == 0, ended.err
    assert "2 failed" in ended.out
    assert (
        "all asks of its programs failed (2 of 2), so the answer rests on none; fdstore log manuals.1"
        in ended.err
    )


def bytes_of(name: str) -> bytes:
    return {
        "empty": b"",
        "data": b"SQLite format 3\0\x10\x00\xff",
        "cut": gzip.compress(LINES.encode())[:-9],
        "wide": LINES.encode("utf-16"),
        "noise": b"\xff\x00\xfe" * 1000,
    }[name]


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("gone", "file_not_found"),
        ("hollow", "there is nothing to store in it; 1 name left out: 1 hidden"),
        ("empty", "it is empty"),
        ("data", "this is a SQLite database; ask about the text in it: sqlite3 data .dump | fdstore ask "),
        ("cut", "it is damaged and cannot be unpacked: it ends too soon"),
        ("wide", "convert it: iconv -f utf-16 -t utf-8 wide | fdstore ask QUESTION -"),
        ("noise", "this is not text in UTF-8"),
    ],
)
def test_what_is_no_text_is_refused_and_leaves_nothing(command, model, file, problem):
    (command.folder / "hollow").mkdir()
    (command.folder / "hollow" / ".hidden").touch()
    if file not in ("gone", "hollow"):
        (command.folder / file).write_bytes(bytes_of(file))

    ended = command("ask", "Count.", "build.log", file)

    assert ended.code == 1
    assert problem in ended.err
    assert trees(command) == []
    assert not model.requests


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["ask", "Why?"], "name the files that it is about"),
        (["ask", " ", "build.log"], "the question is empty"),
        (["ask", "build.log"], 'the question comes first: fdstore ask "What is this about?" build.log'),
        (["ask", "Why?", "-", "-"], "only once"),
        (["ask", "Why?", "build.log", "--budget", "lots"], "not a number of tokens"),
        (["ask", "Why?", "--continue", "a", "--name", "b"], "leave --name out"),
        (["ask", "Why?", "build.log", "--demo", "--detach"], "leave --detach out"),
    ],
)
def test_usage_errors_say_what_to_do(command, args, problem):
    (command.folder / "build.log").write_text(LINES)

    ended = command(*args)

    assert ended.code == 2
    assert problem in ended.err


def test_without_a_key_nothing_is_stored(command):
    (command.folder / "build.log").write_text(LINES)
    command.environment = command.without_key()

    ended = command("ask", "Why?", "build.log")

    assert ended.code == 1
    assert "set ANTHROPIC_API_KEY" in ended.err
    assert "fdstore ask --demo" in ended.err
    assert trees(command) == []


def test_with_demo_a_script_shows_what_would_happen_and_says_that_it_is_one(command):
    (command.folder / "build.log").write_text(LINES)
    command.environment = command.without_key()

    ended = command("ask", "Which lines have an ERROR?", "build.log", "--demo")

    assert ended.code == 0, ended.err
    assert ended.out.startswith("This is a script, not a model")
    assert "build.log: 4000 lines, 38930 characters" in ended.out
    assert "  error: 40 lines, the first is 8: ERROR 7" in ended.out
    assert "a script plays the model; what it says is no answer" in ended.err
    assert "--prefix fdstore-demo" in ended.err
    assert trees(command) == []


@pytest.mark.thorough("another end of a run that is shown elsewhere")
def test_with_demo_what_to_call_next_leads_to_the_script_again(command):
    (command.folder / "build.log").write_text(LINES)
    command.environment = command.without_key()
    ended = command("ask", "Which lines have an ERROR?", "build.log", "--demo")

    _, printed = ended.err.strip().split("; to ask more: ")
    program, *words = shlex.split(printed)
    more = command(*[word.replace("...", "Where is ERROR 7?") for word in words])

    assert program == "fdstore"
    assert more.code == 0, more.err
    assert more.out.startswith("This is a script, not a model")


@pytest.mark.thorough("another end of a run that is shown elsewhere")
def test_with_demo_nothing_has_a_price(command):
    (command.folder / "build.log").write_text(LINES)
    command.environment = command.without_key() | {
        "FDSTORE_PRICES": "claude-sonnet-5-5=3,15,USD script=1,5,USD"
    }

    shown = command("ask", "Which lines have an ERROR?", "build.log", "--demo")
    written = command("ask", "Which lines have an ERROR?", "build.log", "--demo", "--json")

    assert "tokens" in shown.err
    assert "USD" not in shown.err
    assert "USD" not in written.out
    assert '"cost"' not in written.out or not json.loads(written.out)["taken"]["cost"]


def test_with_demo_a_folder_of_many_texts_is_told_in_short(command):
    (command.folder / "logs").mkdir()
    (command.folder / "logs" / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\xff")
    for number in range(12):
        (command.folder / "logs" / f"{number:02}.log").write_text(f"ERROR {number}\n")
    command.environment = command.without_key()

    ended = command("ask", "Which lines have an ERROR?", "logs", "--demo")

    assert ended.code == 0, ended.err
    assert "00.log: 1 lines, 8 characters\n  error: 1 lines, the first is 1: ERROR 0\n" in ended.out
    assert "and 2 more texts\n" in ended.out
    assert "1 of 13 are not UTF-8, stored as bytes: logs/photo.png\n" in ended.err


def test_a_name_that_is_taken_and_one_that_is_not_there_are_errors(command, model, store):
    store.process("taken").create("text")
    store.process("over").end()

    taken = command("ask", "Why?", "build.log", "--name", "taken").err
    assert "taken exists already" in taken
    assert "ask more about its texts: fdstore ask --continue taken QUESTION" in taken
    assert "not_found" in command("ask", "Why?", "--continue", "nowhere").err
    assert "over is exited" in command("ask", "Why?", "--continue", "over").err
    assert store.process("taken").read("fd:1").text == "text"


def test_an_interrupt_cancels_the_question_and_keeps_the_texts(command, store):
    (command.folder / "build.log").write_text(LINES)
    asked, may_answer = threading.Event(), threading.Event()

    def wait(request: Request) -> Reply:
        asked.set()
        assert may_answer.wait(PATIENCE_S)
        return say("Too late.")

    with ScriptedModel(wait) as model:
        command.environment |= model.environ
        with command.start("ask", "Why?", "build.log", "--name", "manuals") as asking:
            assert asked.wait(PATIENCE_S)
            asking.send_signal(signal.SIGINT)
            _, err = asking.communicate(timeout=PATIENCE_S)
        may_answer.set()

    assert asking.returncode == 130, err
    states = {each.id: each.state for each in store.processes()}
    assert states == {"manuals": "open", "manuals.1": "cancelled"}
    assert store.process("manuals").stat("fd:1").chars == len(LINES)
