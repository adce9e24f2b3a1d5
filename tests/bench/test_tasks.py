"""The bench of tasks: descriptors cost short tasks nothing and long ones little, and its rules can fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from fdstore.bench.stage import BenchStage, stage
from tests.bench.tasks import counting, long_texts, texts
from tests.bench.tasks.__main__ import main
from tests.bench.tasks.counting import Part
from tests.bench.tasks.hosts import COLUMNS, Host
from tests.bench.tasks.plans import Hand, Plan
from tests.bench.tasks.reading import ReadingVerdict, judge_ways, measure
from tests.bench.tasks.reading_tasks import READING_TASKS
from tests.bench.tasks.reading_ways import WAYS, Way
from tests.bench.tasks.results import Verdict, judge
from tests.bench.tasks.running import TASKS, run
from tests.bench.tasks.task import Task

COSTS = (Path(__file__).parent.parent.parent / "docs/explanation/task-costs.md").read_text("utf-8")
TEXTS_OF_MEGABYTES = {
    "failed test in a CI log",
    "cause of a traceback",
    "count rows of a CSV",
    "one item of a 3 MB JSON",
}
FAST_READING = "compare all pairs of 60 sections"
FAST = ["a question on a 3 KB file", "quote a function"]


@pytest.fixture(scope="module")
def place() -> Iterator[BenchStage]:
    with stage(quick=True, own_processor=False) as made:
        yield made


@pytest.fixture(scope="module")
def verdicts(place: BenchStage) -> dict[str, Verdict]:
    return {name: judge(run(place.store, TASKS[name], column) for column in COLUMNS) for name in FAST}


@pytest.fixture(scope="module")
def reading(place: BenchStage) -> ReadingVerdict:
    return judge_ways(measure(place.store, READING_TASKS[FAST_READING], way) for way in WAYS)


def documented_rows(first: str = "| task | all inline |") -> dict[str, list[str]]:
    """The cells of the documented table that begins so, by task."""
    _, _, table = COSTS.partition(first)
    rows = [re.split(r" *\| *", line.strip("| ")) for line in table.split("\n\n")[0].splitlines()[2:]]
    return {cells[0]: cells[1:] for cells in rows}


def test_a_short_task_costs_the_same_with_descriptors(verdicts: dict[str, Verdict]) -> None:
    found = verdicts["a question on a 3 KB file"]

    assert found.ok
    assert {(each.tokens, each.turns, each.is_right) for each in found.results} == {
        (found.results[0].tokens, 2, True)
    }


def test_a_large_task_is_right_with_descriptors_for_a_fraction_of_the_tokens(
    verdicts: dict[str, Verdict],
) -> None:
    found = verdicts["quote a function"]

    assert found.ok
    right = {each.column for each in found.results if each.is_right}
    assert right == {"inline", "claude", "fdstore"}  # the middle is what Codex cuts out
    assert found.ratio is not None
    assert found.ratio < 0.2


def test_the_documented_table_has_each_task_and_its_verdicts(verdicts: dict[str, Verdict]) -> None:
    rows = documented_rows()

    assert list(rows) == list(TASKS)
    for name, verdict in verdicts.items():
        shown = ["cannot" not in cell for cell in rows[name][: len(COLUMNS)]]
        assert shown == [each.is_right for each in verdict.results]


@pytest.mark.parametrize("column", COLUMNS)
def test_no_answer_is_right_without_what_proves_it(place: BenchStage, column: str) -> None:
    task = TASKS["a question on a 3 KB file"]
    without = {"src/bisect.py": lambda: texts.library("bisect").replace("lo must be", "must be")}

    found = run(place.store, msgspec.structs.replace(task, files=without), column)

    assert (found.is_right, found.why) == (False, "not shown")


def test_no_answer_is_right_that_is_not_the_true_one(place: BenchStage) -> None:
    def guess(hand: Hand) -> Plan:
        yield from TASKS[FAST[0]].plan(hand)
        return "raise ValueError('low')"

    task: Task = msgspec.structs.replace(TASKS[FAST[0]], plan=guess)

    assert run(place.store, task, "inline").why == "wrong"


@pytest.mark.parametrize("name", [name for name in TASKS if name not in TEXTS_OF_MEGABYTES])
def test_the_truth_of_each_task_is_proved_by_its_texts_and_by_nothing_less(name: str) -> None:
    task = TASKS[name]
    every = [text() for text in (*task.documents.values(), *task.files.values())]
    every += [*(task.parts() if task.parts else ()), task.pasted() if task.pasted else ""]

    assert task.truth()
    assert task.is_proved("\n".join(every))
    assert not task.is_proved(task.question)


@pytest.mark.thorough("a whole task")
def test_a_program_leaves_its_agent_little_and_reads_everything_once(reading: ReadingVerdict) -> None:
    of = {each.way: each for each in reading.results}

    assert reading.ok
    assert [each.why for each in reading.results] == [""] * len(WAYS)
    assert of["program"].own < 0.2 * of["inline"].total
    assert of["program"].others < 1.1 * of["inline"].total


def test_the_documented_table_of_programs_has_each_task_and_its_figures(reading: ReadingVerdict) -> None:
    rows = documented_rows("| task | inline | by pages |")

    assert list(rows) == list(READING_TASKS)
    for cell, result in zip(rows[FAST_READING], reading.results, strict=False):
        own, _, others = cell.partition(" (")[0].replace(" ", "").replace(",", "").partition("+")
        assert int(own) == pytest.approx(result.own, rel=0.06)
        assert int(others or 0) == pytest.approx(result.others, rel=0.06)
        assert f"({result.turns})" in cell


@pytest.mark.parametrize("way", WAYS)
def test_no_way_is_right_that_has_not_seen_all_lines(place: BenchStage, way: Way) -> None:
    task = READING_TASKS[FAST_READING]
    shorter = {"handbook": lambda: long_texts.handbook().partition("## Section 43\n")[0]}

    found = measure(place.store, msgspec.structs.replace(task, documents=shorter), way)

    assert found.why == "wrong"


@pytest.mark.parametrize("name", READING_TASKS)
def test_what_is_said_about_the_parts_makes_the_true_answer(name: str) -> None:
    task = READING_TASKS[name]
    whole = [text() for text in task.documents.values()]
    lines = whole[0].splitlines(keepends=True) if len(whole) == 1 else whole
    half = len(lines) // 2
    parts = ["".join(lines[:half]), "".join(lines[half:])]

    assert task.merge(list(map(task.read, parts))) == task.truth()
    assert task.merge([task.read(parts[0])]) != task.truth()


def test_a_cache_is_read_where_a_request_begins_with_an_earlier_one() -> None:
    system, question = Part("system", "one two three four"), Part("user", "five six seven eight")
    answer, other = Part("assistant", "nine ten eleven twelve"), Part("tool", "new tool came here")

    grown = counting.count([(system, question), (system, question, answer)])
    changed = counting.count([(system, question), (other, system, question)])

    size = counting.total([system])
    assert grown.sent == changed.sent == 5 * size
    assert grown.cached == round(2 * size * 1.25 + 2 * size * 0.1 + size * 1.25)
    assert changed.cached == round(5 * size * 1.25)


def test_hosts_show_long_results_in_their_ways() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 10_001))

    codex, claude = Host("codex", {}), Host("claude", {})
    cut, saved = codex.show(text), claude.show(text)

    assert len(cut) < 41_000
    assert cut.startswith("line 1\n")
    assert cut.endswith("line 10000\n")
    assert "line 5000\n" not in cut
    [path] = claude.files
    assert path in saved
    assert claude.read(path, 5000, 2) == "line 5000\nline 5001\n"
    assert claude.read(path, 1, None).count("\n") == 2000
    assert claude.search(path, "line 777$", 1, only_count=False) == "776-line 776\n777:line 777\n778-line 778"


@pytest.mark.thorough("the tasks are tested one by one")
def test_the_command_prints_a_table_or_json_and_says_which_tasks_there_are() -> None:
    def command(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, arguments)
        return done.exit_code, done.stdout

    code, printed = command("--task", FAST[0], "--json")
    assert (code, msgspec.json.decode(printed)["task"]) == (0, FAST[0])
    code, printed = command("--task", FAST[0], "--markdown")
    assert (code, f"| {FAST[0]} | 1,600 |" in printed) == (0, True)
    code, printed = command("--task", FAST_READING, "--markdown")
    assert (code, f"| {FAST_READING} | 53,000 (2) |" in printed) == (0, True)
    assert CliRunner().invoke(main, ["--task", "x"]).output.count(FAST[0]) == 1
