"""The bench of public tasks: what requests send in each way, counted by hand on tasks of a few characters."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner

from fdstore.bench.stage import BenchStage, stage
from tests.bench.public import __main__ as command
from tests.bench.public import package
from tests.bench.public.measuring import Cost, Group, Measured, cost, measure
from tests.bench.public.package import Call, PublicTask, Turn, public_tasks
from tests.bench.public.replay import TOOLS, Conversation, Exchange, PublicTurn, replay
from tests.bench.public.results import cells, markdown, rows_of
from tests.bench.public.ways import Way, requests
from tests.bench.tasks.counting import Part

LONG = json.dumps({"cities": [f"Harbour {number}" for number in range(700)]})
TASK = PublicTask(
    name="harbours",
    definitions=[{"name": "cities", "description": "All cities."}],
    turns=[Turn("Which?", [Call("count", {}, "700"), Call("cities", {"all": True}, LONG)])],
)


@pytest.fixture(scope="module")
def place() -> Iterator[BenchStage]:
    with stage(quick=True, own_processor=False) as made:
        yield made


def part(role: str, chars: int) -> Part:
    return Part(role, "x" * chars)


def exchange(kind: Literal["kept", "stored", "read"], call: int, whole: int, shown: int) -> Exchange:
    return Exchange(kind, part("assistant", call), part("user", whole), part("user", shown))


SHORT = PublicTurn(part("user", 3), [exchange("kept", 2, 4, 4)])
STORING = PublicTurn(
    part("user", 3),
    [
        exchange("stored", 2, 50, 6),
        exchange("read", 1, 7, 7),
        exchange("read", 1, 30, 30),
        exchange("kept", 2, 1, 1),
    ],
)


def conversation(*turns: PublicTurn) -> Conversation:
    """A task with 10 characters of definitions; ours have 20, and 5 of instructions."""
    return Conversation(
        definitions=(part("tool", 10),),
        our_definitions=(part("tool", 20),),
        our_instructions=part("system", 5),
        turns=turns,
    )


def sizes(way: Way, *turns: PublicTurn, with_reads: bool = False) -> list[int]:
    sent = requests(conversation(*turns), way, with_reads=with_reads)
    return [sum(len(each.text) for each in parts) for parts in sent]


def test_each_call_and_each_end_of_a_turn_is_a_request_that_sends_all_before() -> None:
    assert sizes("plain", SHORT, STORING) == [
        10 + 3,
        10 + 3 + 2 + 4,
        10 + 9 + 3,
        10 + 12 + 2 + 50,
        10 + 64 + 2 + 1,
    ]


def test_what_is_always_offered_stands_in_each_request() -> None:
    assert sizes("always", SHORT, STORING) == [38, 44, 47, 47 + 2 + 6, 55 + 2 + 1]


@pytest.mark.parametrize("way", ["appearing", "deferred"])
def test_what_is_held_back_costs_nothing_before_the_first_descriptor(way: Way) -> None:
    assert sizes(way, SHORT, STORING) == [13, 19, 22, 22 + 2 + 6 + 25, 55 + 2 + 1]
    assert sizes(way, SHORT, STORING, STORING)[5:] == [61, 69, 72]
    assert sizes(way, SHORT) == sizes("plain", SHORT)


def test_reads_are_requests_that_send_their_answers() -> None:
    assert sizes("deferred", SHORT, STORING, with_reads=True) == [13, 19, 22, 55, 55 + 8, 63 + 31, 94 + 3]
    assert sizes("plain", SHORT, STORING, with_reads=True) == sizes("plain", SHORT, STORING)


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("plain", Cost(205, 90, 205, 90)),
        ("always", Cost(242, 76, 438, 131)),
        ("appearing", Cost(167, 89, 363, 143)),
        ("deferred", Cost(167, 69, 363, 124)),
    ],
)
def test_a_beginning_that_was_sent_before_costs_a_tenth(way: Way, expected: Cost) -> None:
    """deferred, cached: 13 + (1.3 + 6) + (1.9 + 3) + (2.2 + 33) + (5.5 + 3) = 68.9. Tools that appear lose
    all of the 22 that were sent before: 13 + 7.3 + 4.9 + 55 + 8.5 = 88.7."""
    assert cost(conversation(SHORT, STORING), way, len) == expected


def test_a_replay_stores_what_is_longer_than_the_threshold_and_reads_it(place: BenchStage) -> None:
    with place.process() as process:
        [turn] = replay(TASK, process, len(LONG) - 1).turns
    with place.process() as process:
        inline = replay(TASK, process, len(LONG))

    assert [each.kind for each in turn.exchanges] == ["kept", "stored", "read", "read"]
    kept, stored, searched, page = turn.exchanges
    assert (kept.call.text, kept.shown.text) == ('["count", {}]', "700")
    assert stored.whole.text == LONG
    assert stored.shown.text.startswith('<fd_result fd="fd:1"')
    assert searched.call.text == '["search_fd", {"fd": "fd:1", "pattern": "Harbour"}]'
    assert searched.shown.text.startswith("<fd_search")
    assert page.call.text == '["read_fd", {"fd": "fd:1", "start": 2}]'
    assert 'page="2" pages="3"' in page.shown.text
    assert [each.kind for each in inline.turns[0].exchanges] == ["kept", "kept"]
    assert [json.loads(each.text)["name"] for each in inline.our_definitions] == list(TOOLS)


def test_a_task_is_measured_once_at_each_threshold_and_once_without(place: BenchStage) -> None:
    [found] = measure([TASK], place.process, [2000, 50_000], ["all"])

    assert [(each.way, each.threshold, each.stored) for each in found] == [
        *((way, 2000, 1) for way in ("always", "appearing", "deferred")),
        *((way, 50_000, 0) for way in ("always", "appearing", "deferred")),
        ("plain", None, 0),
    ]
    assert found[4].characters == found[6].characters
    assert list(measure([TASK], place.process, [2000], ["short"])) == [[]]


def test_sums_of_a_group_are_divided_by_those_of_everything_inline() -> None:
    def measured(group: Group, way: Way, sent: int) -> Measured:
        sums = Cost(sent, sent // 2, sent, sent)
        return Measured(group, None if way == "plain" else 8000, way, int(way != "plain"), sums, sums)

    both = [measured("long", "plain", 900), measured("short", "plain", 100)]
    both += [measured("long", "deferred", 450), measured("short", "deferred", 100)]

    rows = rows_of(both, ["all", "long"])

    assert [(row.group, row.tasks, row.way, row.stored) for row in rows] == [
        ("all", 2, "plain", 0),
        ("all", 2, "deferred", 2),
        ("long", 1, "plain", 0),
        ("long", 1, "deferred", 1),
    ]
    assert cells(rows, "tokens")[1] == ["", "8000", "deferred", "2", "0.550", "0.550", "0.550", "0.550"]
    assert "|  | 8000 | deferred | 1 | 0.500 | 0.500 | 0.500 | 0.500 |" in markdown(rows, "characters")


@pytest.fixture
def unpacked(tmp_path: Path) -> Iterator[Path]:
    """A folder with a package of one task, as `make bench-public` unpacks the true one."""
    data = tmp_path / "bfcl_eval/data"
    source = tmp_path.joinpath(*package.SOURCES.split("."), "math_api.py")
    for folder in (data / "possible_answer", data / "multi_turn_func_doc", source.parent):
        folder.mkdir(parents=True)
    task = {
        "id": "sums",
        "question": [[{"role": "user", "content": "Add."}], [{"role": "user", "content": "Thank you."}]],
        "initial_config": {},
        "involved_classes": ["MathAPI"],
        "excluded_function": ["power"],
    }
    answer = {"id": "sums", "ground_truth": [["add(1, b=[2, 3])", "reset()"], []]}
    (data / package.NAME).write_text(json.dumps(task) + "\n")
    (data / "possible_answer" / package.NAME).write_text(json.dumps(answer) + "\n")
    functions = "".join(json.dumps({"name": name}) + "\n" for name in ("add", "power"))
    (data / "multi_turn_func_doc/math_api.json").write_text(functions)
    source.write_text(
        "class MathAPI:\n"
        "    def add(self, a, b):\n        return {'sum': a + sum(b)}\n"
        "    def reset(self):\n        return None\n"
    )
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in [name for name in sys.modules if name.partition(".")[0] == "bfcl_eval"]:
        del sys.modules[name]


def test_a_public_task_has_the_results_that_its_calls_give(unpacked: Path) -> None:
    [task] = public_tasks(unpacked)

    assert task.definitions == [{"name": "add"}]
    assert task.turns == [
        Turn("Add.", [Call("add", {"a": 1, "b": [2, 3]}, '{"sum": 6}'), Call("reset", {}, "None")]),
        Turn("Thank you.", []),
    ]


def test_the_command_prints_tables_or_rows(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "FOLDER", unpacked)

    printed = CliRunner().invoke(command.main, ["--threshold", "2000", "--group", "short"])
    rows = CliRunner().invoke(command.main, ["--threshold", "2000", "--group", "all", "--json"])

    assert printed.exit_code == 0
    assert [line.split()[0] for line in printed.stdout.split("\n\n")] == ["CHARACTERS", "TOKENS"]
    assert "always offered" in printed.stdout
    assert [json.loads(line)["way"] for line in rows.stdout.splitlines()] == [
        "plain",
        "always",
        "appearing",
        "deferred",
    ]


def test_the_command_says_how_the_package_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "FOLDER", tmp_path)

    done = CliRunner().invoke(command.main, [])

    assert done.exit_code == 1
    assert "run `make bench-public`" in done.stderr
