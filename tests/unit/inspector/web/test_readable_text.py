"""JSON and Markdown laid out for reading."""

from __future__ import annotations

import json

import pytest

from fdstore.inspector.web.readable_text import MAX_CHARS, MAX_LAID_OUT, lay_out, view_of
from fdstore.model.records import Descriptor
from fdstore.text.layout import reindent_json
from tests.unit.rendering import descriptor

ROWS = [{"id": number, "name": 'a "row"\n', "tags": ["x", "é"]} for number in range(2000)]


def view(beginning: str = "", name: str = "3", **fields: object) -> str | None:
    found: Descriptor = descriptor("fd:3", **fields)  # type: ignore[arg-type]
    return view_of(found, name, beginning)


@pytest.mark.parametrize(
    ("wanted", "beginning", "fields"),
    [
        ("rendered", "", {"media_type": "text/markdown"}),
        ("rendered", "", {"name": "notes/plan.md"}),
        ("rendered", "", {"source": "README.md"}),
        ("pretty", "", {"media_type": "application/json"}),
        ("pretty", "", {"media_type": "application/vnd.api+json; charset=utf-8"}),
        ("pretty", "", {"name": "rows.jsonl"}),
        ("pretty", ' {"a": [1, 2', {}),
        ("pretty", json.dumps(ROWS), {}),
        ("pretty", '{"a": 1}\n{"a": 2}\n{"a"', {}),
        (None, "[2024-01-02 10:00] begins\n[2024-01-02 10:01] goes on\n" * 9, {}),
        (None, "# A heading\n", {}),
        (None, "", {}),
    ],
)
def test_type_name_or_beginning_say_how_a_text_is_laid_out(
    wanted: str | None, beginning: str, fields: dict[str, str]
) -> None:
    assert view(beginning, **fields) == wanted


def test_json_is_indented_and_its_values_stay() -> None:
    text = '{"b":1.50,"a":[{}],"a":"\\u00e9"}'

    found = lay_out("pretty", text, 1, len(text))

    assert found.text == '{\n  "b": 1.50,\n  "a": [\n    {}\n  ],\n  "a": "\\u00e9"\n}'
    assert (found.first, found.last, found.is_cut) == (1, len(text), False)


def test_of_long_json_the_beginning_is_indented_wherever_it_is_cut() -> None:
    text = json.dumps(ROWS)
    whole = reindent_json(text)
    assert whole is not None

    for end in range(2000, 2100):
        found = lay_out("pretty", text[:end], 1, len(text))

        assert found.text is not None
        assert whole.startswith(found.text)
        assert found.text.endswith("\n")
        assert len(found.text) > end


def test_json_in_lines_is_indented_line_by_line() -> None:
    text = '{"a":1}\n{"b":2}\n{"c'

    assert lay_out("pretty", text, 1, 99).text == '{\n  "a": 1\n}\n{\n  "b": 2\n}\n'
    assert lay_out("pretty", text[:16], 1, 16).text == '{\n  "a": 1\n}\n{\n  "b": 2\n}\n'


@pytest.mark.parametrize("text", ["{'a': 1}", "# Plan\n", '{"a": 1} and so on, no JSON\n', "1", '{"a"}'])
def test_what_is_no_json_is_not_laid_out(text: str) -> None:
    assert lay_out("pretty", text, 1, len(text)).text is None
    assert lay_out("pretty", text + "x" * 100, 1, 10_000).text is None


def test_json_that_grows_much_is_cut() -> None:
    text = "[" * 100 + "1," * 20_000

    found = lay_out("pretty", text, 1, MAX_CHARS["pretty"] + 1)

    assert found.is_cut
    assert found.text is not None
    assert len(found.text) <= MAX_LAID_OUT


def test_markdown_is_cut_at_a_line_and_goes_on_there() -> None:
    found = lay_out("rendered", "one\ntwo\nthr", 5, 100)

    assert (found.text, found.first, found.last) == ("one\ntwo\n", 5, 12)
    assert lay_out("rendered", "end", 98, 100).text == "end"
