"""The end of a text, indented JSON and visible control characters: total, exact, linear."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.text.layout import MAX_NESTING, reindent_json, show_controls, tail_of

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
containers = st.lists(values) | st.dictionaries(st.text(), values)
TOKENS = [
    *'{}[],:" \n\t\r\\-0123456789.eE+a',
    *("1.10", "01", "true", "null", "NaN", "Infinity", '"a"', '"k":', "[]", "{}"),
    *('"\\ud800"', '"\\x"', '"\x01"', "\ufeff", "\xa0", "\u0663"),
]
json_pieces = st.lists(st.sampled_from(TOKENS), max_size=12).map("".join)


def parsed(text: str) -> Any:
    """`text` as strict JSON with nothing lost: numbers as written, pairs in order, duplicates kept."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(
        text,
        object_pairs_hook=lambda pairs: ("object", pairs),
        parse_float=str,
        parse_int=str,
        parse_constant=refuse,
    )


def is_container(text: str) -> bool:
    try:
        parsed(text)
    except ValueError:
        return False
    return text.strip(" \t\n\r")[0] in "[{"


# The tail


@pytest.mark.parametrize(
    ("text", "limit", "tail"),
    [
        ("", 5, ""),
        ("abc", 5, "abc"),
        ("abcde", 5, "abcde"),
        ("abcdef", 5, "bcdef"),
        ("ab\ncde", 5, "cde"),
        ("a\nbcd\n", 5, "bcd\n"),
        ("abcdef\n", 5, "cdef\n"),
        ("\nabcde", 5, "abcde"),
        ("ab\r\n\nc", 3, "\nc"),
        ("abc", 0, ""),
    ],
)
def test_a_tail_begins_with_a_line_where_it_can(text: str, limit: int, tail: str):
    assert tail_of(text, limit) == tail


@given(text=st.text(st.sampled_from("ab\n\r")), limit=st.integers(0, 12))
def test_a_tail_is_an_end_of_the_text_and_is_cut_inside_a_line_only_if_that_line_is_all_of_it(
    text: str, limit: int
):
    tail = tail_of(text, limit)

    assert text.endswith(tail)
    assert len(tail) <= limit
    assert bool(tail) == bool(text and limit)
    if tail and len(tail) < len(text) and text[-len(tail) - 1] != "\n":
        assert "\n" not in tail[:-1]


# JSON


def test_json_is_indented_and_its_tokens_are_unchanged():
    text = '{"b":1E+05,"a":[1.10,-0.0,12345678901234567890],"b":"\\u00e9\\/ {x}",  "e":{ },"l":[\n]}'

    assert reindent_json(text) == (
        '{\n  "b": 1E+05,\n  "a": [\n    1.10,\n    -0.0,\n    12345678901234567890\n  ],\n'
        '  "b": "\\u00e9\\/ {x}",\n  "e": {},\n  "l": []\n}'
    )


@pytest.mark.parametrize(
    "text",
    [
        *("1", '"a"', "true", "null", "", " ", "plain", "NaN"),
        *("[1,]", '{"a":1,}', "[NaN]", "[-Infinity]", "[1] 2", "[1]]", "[1}", "{1:2}", '{"a"}', '{"a":}'),
        *("[,1]", "[1 2]", "[01]", "[1.]", "[.5]", "[+1]", "[1e]", "[-]", '["\n"]', '["\\x"]', '["\\u12g4"]'),
        *('["a]', "[", "{", "['a']", "[tru]", "[truex]", "\ufeff[1]", "[\xa01]", "[\u0661]", "[1]\x00"),
        *("{:1}", '{"a":1 "b":2}', '{"a",1}'),
    ],
)
def test_only_a_strict_json_object_or_array_is_indented(text: str):
    assert reindent_json(text) is None


def test_raw_control_characters_in_strings_are_refused():
    taken = [number for number in range(128) if reindent_json(f'["{chr(number)}"]') is not None]

    assert taken == [number for number in range(32, 128) if chr(number) not in '"\\']


@given(text=json_pieces | containers.map(json.dumps))
@example('["\\ud800"]')
@example('{"a" :\t[ ] }\r\n')
def test_exactly_the_input_of_a_strict_parser_is_accepted(text: str):
    assert (reindent_json(text) is not None) == is_container(text)


@given(value=containers, indent=st.integers(0, 4), ascii_only=st.booleans(), spaced=st.booleans())
def test_an_indented_text_means_the_same_and_looks_as_json_dumps_would_print_it(
    value: Any, indent: int, ascii_only: bool, spaced: bool
):
    text = json.dumps(value, ensure_ascii=ascii_only, separators=(" ,\n", "\t: ") if spaced else (",", ":"))

    indented = reindent_json(text, indent)

    assert indented == json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert parsed(indented) == parsed(text)
    assert reindent_json(indented, indent) == indented


def test_nesting_has_a_limit_and_never_overflows_the_stack():
    assert reindent_json("[" * MAX_NESTING + "]" * MAX_NESTING) is not None
    assert reindent_json("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1)) is None
    assert reindent_json("[" * 100_000 + "]" * 100_000) is None
    assert reindent_json('{"a":' * 100_000) is None


def test_json_is_not_indented_if_that_would_turn_a_megabyte_into_gigabytes():
    text = "[" * 900 + ",".join("1" * 500_000) + "]" * 900

    assert reindent_json(text) is None


@pytest.mark.thorough("a bound of time")
@pytest.mark.parametrize(
    "text",
    [
        '["' + "a" * 1_000_000 + '"]',
        '["' + '\\"' * 500_000 + '"]',
        '["' + "\\" * 1_000_001,
        "[" + " " * 1_000_000 + "x",
        "[" + "1" * 1_000_000 + "]",
        "[" + "[]," * 300_000 + "[]]",
    ],
    ids=["long string", "escapes", "unclosed escapes", "blanks", "long number", "many arrays"],
)
def test_a_megabyte_of_json_takes_no_more_than_linear_time(text: str):
    began = time.process_time()

    reindent_json(text)

    assert time.process_time() - began < 5


# Visible text


def test_control_characters_are_shown_by_their_number_but_line_breaks_and_tabs_stay():
    assert show_controls("\x1b[31mred\r\n\tNUL \0 é 😀") == "\\u{1b}[31mred\\u{d}\n\tNUL \\u{0} é 😀"
    assert (
        show_controls("a\u2028b\u202e\u2069\x9b\x7f\ud800")
        == "a\\u{2028}b\\u{202e}\\u{2069}\\u{9b}\\u{7f}\\u{d800}"
    )
    assert show_controls("\n\t", keep="") == "\\u{a}\\u{9}"


@given(text=st.text(st.characters()))
def test_visible_text_is_stable_and_can_be_printed_anywhere(text: str):
    shown = show_controls(text)

    assert show_controls(shown) == shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    shown.encode("utf-8")
