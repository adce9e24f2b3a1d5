"""The task of the agent of a question: what it is told of the texts and of earlier questions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fdstore.agents.loop.questions import (
    EARLIER_CHARS,
    LISTED_TEXTS,
    TOOLS,
    Earlier,
    offer_sql,
    question_bundle,
    question_in,
    task_text,
)
from fdstore.errors import InvalidArgument
from fdstore.model.records import Descriptor, ModelPrice
from fdstore.setup.settings import parse_prices


def text(number: int) -> Descriptor:
    return Descriptor(
        fd=f"fd:{number}",
        chars=10,
        bytes=10,
        lines=1,
        pages=1,
        page_size=4000,
        source=f"{number}.txt",
        state="sealed",
        created_at=1.0,
        producer="manuals",
    )


def test_many_texts_are_not_all_listed() -> None:
    task = task_text("Why?", [text(number) for number in range(1, LISTED_TEXTS + 4)])

    assert task.count(".txt") == LISTED_TEXTS
    assert task.endswith("- and 3 more; fds() lists them all")


def named(key: str, kind: Any = "text") -> Descriptor:
    chars = 10 if kind == "text" else 0
    return msgspec.structs.replace(
        text(1), fd=f"name:{key}", source=key, kind=kind, chars=chars, lines=chars and 1
    )


def test_texts_with_names_are_told_one_by_one_or_by_folder_as_deep_as_there_is_room() -> None:
    few = task_text("Why?", [named("a/b"), named("a/photo.png", "bytes")])
    many = [named(f"src/{folder}/{n}/x") for folder in ("a", "b") for n in range(100)]
    more = [*(named(f"src/{n}", "bytes") for n in range(9)), *(named(f"top {n}") for n in range(2))]

    lines = task_text("Why?", [*many, *more, text(1)]).splitlines()

    assert few.splitlines()[3:] == [
        "- name:a/b: a/b, 10 characters in 1 lines",
        "- name:a/photo.png: a/photo.png, no text: text/plain, 10 bytes",
    ]
    assert lines[3:] == [
        "- name:src/a/: 100 texts, 1000 characters in 100 lines",
        "- name:src/b/: 100 texts, 1000 characters in 100 lines",
        "- directly in name:src/: 9 contents, 9 of them bytes, 0 characters in 0 lines",
        "- name:top 0: top 0, 10 characters in 1 lines",
        "- name:top 1: top 1, 10 characters in 1 lines",
        "- fd:1: 1.txt, 10 characters in 1 lines",
        '- list_fds(prefix="...") lists the names that begin so',
    ]


def test_long_answers_of_earlier_questions_are_cut_and_missing_ones_named() -> None:
    earlier = [Earlier("Who?", "z" * 9000), Earlier("When?", "")]

    task = task_text("Why?", [], earlier)

    assert task.count("z") == EARLIER_CHARS
    assert "- When?\n  There was no answer." in task


def test_the_question_is_found_in_its_task() -> None:
    question = "Why?\n\nThe texts say nothing."

    assert question_in(task_text(question, [text(1)], [Earlier("Who?", "Ann.")])) == question


def test_sql_is_offered_over_texts_that_are_tables() -> None:
    table = msgspec.structs.replace(text(1), source="people.csv")
    found = msgspec.structs.replace(text(2), media_type="application/json")

    def tools(*texts: Descriptor) -> tuple[str, ...]:
        bundle = offer_sql(question_bundle("any"), texts)
        return bundle.programs[bundle.root].tools

    assert tools(text(1), table) == tools(found) == (*TOOLS, "sql_fd")
    assert tools(text(1)) == TOOLS


def test_each_model_has_its_price() -> None:
    big, small = ModelPrice(input=3, output=15), ModelPrice(input=1, output=5)

    def price_of_asks(*given: str | ModelPrice | None) -> ModelPrice | None:
        bundle = question_bundle(*given)  # type: ignore[arg-type]
        return bundle.programs[bundle.root].ask.price

    assert price_of_asks("big", "small", big, small) == small
    assert price_of_asks("big", None, big, big) == big
    assert price_of_asks("big", "small", big, None) is None


@pytest.mark.parametrize("prices", ["model", "model=3", "model=3,x", "=3,15", "model=-1,5", "model=nan,1"])
def test_what_is_no_price_is_refused(prices: str) -> None:
    with pytest.raises(InvalidArgument, match="write it as MODEL=INPUT,OUTPUT,CURRENCY"):
        parse_prices(prices)
