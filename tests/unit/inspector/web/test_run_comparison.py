"""Two runs side by side: differences in words, and steps aligned without losing one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.steps import Step
from fdstore.inspector.web.run_comparison import (
    align_steps,
    compare_facts,
    facts_of,
    pair_processes,
    steps_of,
)
from fdstore.inspector.web.whole_tree import WholeTree
from fdstore.model.records import ModelPrice, ProcessRecord, TreeLimits, TreeRecord


def call(tool: str, arguments: Any = None, result: str | None = "ok", *, is_error: bool = False) -> Step:
    entry = ConversationEntry(position=1, kind="call", tool=tool, arguments=arguments)
    if result is None:
        return Step(entry=entry)
    said = ConversationEntry(position=2, kind="result", text=result, chars=len(result), is_error=is_error)
    return Step(entry=entry, result=said)


def answered(text: str) -> Step:
    return Step(entry=ConversationEntry(position=1, kind="answer", text=text, chars=len(text)))


steps = st.lists(
    st.one_of(
        st.builds(answered, st.sampled_from("ab")),
        st.builds(
            call,
            st.sampled_from(["read_fd", "put"]),
            st.sampled_from([None, {"fd": "fd:1"}, {"x": [1, "ä"]}]),
            st.none() | st.sampled_from(["ok", "no"]),
            is_error=st.booleans(),
        ),
    ),
    max_size=12,
)


@given(steps, steps)
def test_all_steps_of_both_are_there_in_their_order(a, b):
    blocks = align_steps(a, b, ("one", "two"))

    pairs = [pair for block in blocks for pair in block.pairs]
    assert [pair.a for pair in pairs if pair.a] == a
    assert [pair.b for pair in pairs if pair.b] == b
    assert all(block.is_equal == (not pair.difference) for block in blocks for pair in block.pairs)
    assert all(first.is_equal != second.is_equal for first, second in pairwise(blocks))
    assert all(pair.a == pair.b for pair in pairs if not pair.difference)


@given(steps)
def test_a_run_beside_itself_is_one_block_of_equal_steps(a):
    blocks = align_steps(a, a, ("one", "two"))

    assert [block.is_equal for block in blocks] == ([True] if a else [])


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (call("put", {"x": 1}), call("put", {"x": 2}), "other arguments"),
        (call("put", {"x": 1}), call("get", {"x": 1}), "another tool"),
        (call("put", {"x": 1, "y": 2}), call("put", {"y": 2, "x": 1}), ""),
        (call("put"), call("put", result="no"), "another result"),
        (call("put"), call("put", is_error=True), "it failed"),
        (call("put", is_error=True), call("put"), "it did not fail"),
        (call("put"), call("put", result=None), "only one has a result"),
        (call("put", result=None), call("put", result=None), ""),
        (answered("a"), answered("b"), "other words"),
        (answered("a"), call("put"), "another step"),
    ],
)
def test_a_difference_of_two_steps_is_in_words(a, b, said):
    [block] = align_steps([a], [b], ("one", "two"))

    assert [pair.difference for pair in block.pairs] == [said]


def test_a_step_that_only_one_has_is_named_and_the_others_stay_beside_each_other():
    a = [answered("go"), call("put"), call("get")]

    blocks = align_steps(a, [a[0], a[2], answered("more")], ("one", "two"))

    said = [[pair.difference for pair in block.pairs] for block in blocks]
    assert said == [[""], ["only in one"], [""], ["only in two"]]


def test_the_names_of_the_runs_themselves_are_no_difference():
    def run(name: str, other: str = "") -> list[Step]:
        return [
            call("wait", {"target": f"{name}.1"}, f'process="{name}.1"{other}'),
            answered(f"{name}.2 did"),
        ]

    equal = align_steps(run("build"), run("build-2"), ("build", "build-2"))
    longer = align_steps(run("build"), run("build-22"), ("build", "build-2"))
    differ = align_steps(run("build"), run("build-2", "!"), ("build", "build-2"))

    assert [block.is_equal for block in equal] == [True]
    assert [pair.difference for block in longer for pair in block.pairs] == ["other arguments", "other words"]
    assert [pair.difference for block in differ for pair in block.pairs] == ["another result", ""]


def test_texts_that_are_cut_are_equal_as_far_as_they_are_known():
    def said(text: str, chars: int) -> Step:
        return Step(entry=ConversationEntry(position=1, kind="answer", text=text, chars=chars))

    blocks = [
        align_steps([said("abc", 90)], [said(text, chars)], names)
        for names in (("one", "two"), ("one", "three"))
        for text, chars in (("abc", 90), ("abc", 91), ("abd", 90), ("abc", 3))
    ]

    assert [block.is_equal for [block] in blocks] == [True, False, False, False, True, True, False, False]


def test_steps_are_answers_that_say_something_and_calls_with_their_results():
    entries = [
        ConversationEntry(position=0, kind="task", text="do"),
        ConversationEntry(position=1, kind="answer", text=""),
        ConversationEntry(position=1, part=1, kind="call", tool="put", call="turn1:t1"),
        ConversationEntry(position=2, kind="result", text="ok", call="turn1:t1"),
        ConversationEntry(position=3, kind="answer", text="done"),
    ]

    assert steps_of(entries) == [Step(entry=entries[2], result=entries[3]), Step(entry=entries[4])]


def run(name: str, *processes: ProcessRecord, **counts: Any) -> WholeTree:
    facts = {
        "created_at": 1.0,
        "used_at": 2.0,
        "bytes": 100,
        "fds": 2,
        "processes": len(processes),
        "live": 0,
    }
    tree = TreeRecord(id=name, limits=TreeLimits(), **{**facts, **counts})
    return WholeTree(tree, list(processes), len(processes))


def process(id_: str, took: float = 1.0, **more: Any) -> ProcessRecord:
    made = ProcessRecord(id=id_, state="exited", program="agent", started_at=10.0, ended_at=10.0 + took)
    return msgspec.structs.replace(made, **more)


def test_facts_of_two_runs_say_how_the_second_one_differs():
    a = run("one", process("one"), process("one.1", state="failed", input_tokens=70, losses=1))
    b = run("two", process("two", 3.5, reason="done"), bytes=4100)

    pairs = {each.name: each for each in compare_facts(facts_of(a, 99.0), facts_of(b, 99.0))}

    said = {name: pair.difference for name, pair in pairs.items() if pair.difference}
    assert said == {
        "Reason": "differs",
        "Took": "2.5 s longer",
        "Tokens in": "70 fewer",
        "Processes": "1 fewer",
        "Failed processes": "1 fewer",
        "Losses": "1 fewer",
        "Stored": "4.0 kB more",
    }
    assert (pairs["Took"].a, pairs["Took"].b, pairs["Took"].unit) == (1.0, 3.5, "s")


def test_what_takes_or_fails_less_is_better_and_other_differences_are_neither():
    price = ModelPrice(input=1.0, output=1.0, currency="USD")
    before = process("one", input_tokens=5_000_000, output_tokens=20, price=price)
    after = process("two", 3.5, input_tokens=4_000_000, output_tokens=30, price=price, reason="done")
    a = run("one", before, process("one.1", state="failed", losses=1))
    b = run("two", after, process("two.1", program="other"), bytes=4100)

    facts = {each.name: each for each in compare_facts(facts_of(a, 99.0), facts_of(b, 99.0))}
    [root, child] = pair_processes(a, b, 99.0)

    assert {name: each.verdict for name, each in facts.items() if each.difference} == {
        "Reason": "",
        "Took": "worse",
        "Tokens in": "better",
        "Tokens out": "worse",
        "Cost": "better",
        "Failed processes": "better",
        "Losses": "better",
        "Stored": "",
    }
    assert facts["Cost"].difference == "1.00 USD less"
    assert {each.text: each.verdict for each in (*root.differences, *child.differences)} == {
        "2.5 s longer": "worse",
        "tokens: 999,990 fewer": "better",
        "exited, not failed": "better",
        "another program": "",
        "losses: 1 fewer": "better",
    }


def test_a_little_longer_is_not_worse():
    a, b = run("one", process("one", 10.0)), run("two", process("two", 10.4))

    [took] = [each for each in compare_facts(facts_of(a, 99.0), facts_of(b, 99.0)) if each.name == "Took"]

    assert (took.difference, took.verdict) == ("400 ms longer", "")


def test_costs_of_other_currencies_differ_and_are_not_judged():
    def priced(name: str, currency: str) -> WholeTree:
        price = ModelPrice(input=1.0, output=1.0, currency=currency)
        return run(name, process(name, input_tokens=1_000_000, price=price))

    [cost] = [
        each
        for each in compare_facts(facts_of(priced("a", "USD"), 9.0), facts_of(priced("b", "EUR"), 9.0))
        if each.name == "Cost"
    ]

    assert (cost.a, cost.b, cost.difference, cost.verdict) == ("1.00 USD", "1.00 EUR", "differs", "")


def test_a_step_that_failed_in_one_run_alone_is_worse_or_better():
    for failed_in_b in (True, False):
        [block] = align_steps(
            [call("put", is_error=not failed_in_b)], [call("put", is_error=failed_in_b)], ("a", "b")
        )
        assert [pair.verdict for pair in block.pairs] == ["worse" if failed_in_b else "better"]


def test_processes_are_aligned_by_their_numbers():
    a = run("one", process("one"), *(process(f"one.{number}") for number in (2, 10)), process("one.2.1"))
    b = run(
        "two",
        process("two", 1.2),
        process("two.2", 9.0, state="failed", program="other", input_tokens=5, losses=2),
        process("two.3"),
    )

    pairs = pair_processes(a, b, 99.0)

    assert [(each.path, tuple(said.text for said in each.differences)) for each in pairs] == [
        ("", ()),
        (".2", ("failed, not exited", "another program", "8.0 s longer", "tokens: 5 more", "losses: 2 more")),
        (".2.1", ("only in one",)),
        (".3", ("only in two",)),
        (".10", ("only in one",)),
    ]


def test_a_process_that_goes_on_takes_until_now_and_one_that_did_not_start_takes_nothing():
    a = run("one", process("one", ended_at=None))
    b = run("two", process("two", started_at=None))

    [pair] = pair_processes(a, b, 15.0)

    assert (pair.a.duration_s, pair.b.duration_s) == (5.0, None)
