"""The one reader of messages: strict JSON, and what JavaScript and Python write beside it."""

from __future__ import annotations

import json
import re
from io import BufferedReader
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from fdstore.hosts.gateway.json_parts import (
    SHORT_BYTES,
    decoded,
    dumps,
    first_parts_of,
    items_of,
    map_strings,
    parts_of,
    string_of,
    value_of,
)
from fdstore.hosts.gateway.json_scan import MAX_PARTS, split, strings
from fdstore.hosts.gateway.json_texts import LONG_BYTES, Text
from fdstore.hosts.gateway.messages import Message

WINDOW = 14
"""Not much more than the longest escape, so that windows end everywhere."""

texts = st.text(st.sampled_from('a"\\\n\té😀{}[]:,u0dD\x01\ud83d\ude00') | st.characters(), max_size=40)
values = st.recursive(
    texts | st.integers() | st.floats() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def read(literal: bytes) -> str:
    return b"".join(decoded(literal, WINDOW)).decode()


def shown(text: str) -> str:
    """A text as it is stored: pairs of surrogates joined, lone ones as escapes."""
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return joined.encode("utf-8", "backslashreplace").decode()


def joined(value: Any) -> Any:
    """A value with the pairs of its surrogates joined, as any reader of JSON does."""
    return json.loads(json.dumps(value))


@given(st.dictionaries(texts, values, max_size=4))
def test_a_message_as_python_writes_it_is_taken_apart_and_put_together_again(fields: dict[str, Any]) -> None:
    whole = json.dumps(fields).encode()

    parts = parts_of(whole)

    assert parts is not None
    assert {name: repr(json.loads(bytes(part))) for name, part in parts.items()} == {
        name: repr(value) for name, value in joined(fields).items()
    }
    assert repr(json.loads(dumps(parts))) == repr(joined(fields))
    assert Message(whole).problem == ""


@given(st.lists(values, max_size=4), st.booleans())
def test_parts_are_found_however_windows_cut_the_text(items: list[Any], is_indented: bool) -> None:
    whole = json.dumps(items, indent=1 if is_indented else None).encode()

    found = split(whole, WINDOW)

    assert found is not None
    assert found.has_ended
    assert [repr(json.loads(whole[begin:end])) for begin, _, end in found.spans] == [
        repr(item) for item in joined(items)
    ]


@given(values)
def test_strings_are_found_however_windows_cut_the_text(value: Any) -> None:
    whole = json.dumps(value).encode()

    found = [whole[start:end] for start, end in strings(whole, WINDOW)]

    assert found == re.findall(rb'"(?:[^"\\]|\\.)*"', whole)


@given(texts)
def test_a_string_is_decoded_the_same_however_pieces_cut_it(text: str) -> None:
    assert read(json.dumps(text).encode()) == shown(text)


@given(st.lists(st.sampled_from([r"\ud83d", r"\ude00", r"\\", r"\n", "u", "d83d", "é", r"\u00e9", "\x01"])))
def test_halves_of_characters_are_shown_as_text(parts: list[str]) -> None:
    literal = '"' + "".join(parts) + '"'

    assert read(literal.encode()) == shown(json.loads(literal, strict=False))
    assert string_of(literal.encode()) == shown(json.loads(literal, strict=False))


@pytest.mark.parametrize("literal", [b'"\xff"', b'"' + b"\x80" * 40 + b'"', b'"\\u12"', b'"a\\"', b'"', b"7"])
def test_a_string_that_is_no_text_is_refused(literal: bytes) -> None:
    with pytest.raises(ValueError):
        read(literal)
    assert string_of(literal) is None


@given(st.binary(max_size=60) | texts.map(lambda text: json.dumps({"a": [text]}).encode()[:-2]))
def test_what_is_no_json_is_not_read(whole: bytes) -> None:
    message = Message(whole)

    if message.fields is not None:
        json.loads(bytes(message.whole).decode("utf-8", "replace"), strict=False)
    elif message.items is None:
        assert message.problem or not bytes(message.whole).strip()


@pytest.mark.parametrize(
    "number", ["1.0", "1e400", "-0", "12345678901234567890123", "1E5", "NaN", "-Infinity", "9" * 5000]
)
def test_a_number_is_written_as_it_came(number: str) -> None:
    whole = b'{"half":"\\ud83d","n":' + number.encode() + b"}"

    assert dumps(parts_of(whole)) == whole


def test_names_keep_their_halves_of_characters_and_the_last_of_equal_ones_counts() -> None:
    parts = parts_of(rb'{"\ud83d": 1, "a": 2, "b": NaN, "a": 3, "\u0000": "\u0000"}')

    assert dumps(parts) == rb'{"\ud83d":1,"a":3,"b":NaN,"\u0000":"\u0000"}'


@pytest.mark.parametrize("depth", [900, 1100, 100_000])
def test_what_is_nested_deeply_is_a_part(depth: int) -> None:
    deep = b"[" * depth + b"1" + b"]" * depth

    message = Message(b'{"id":1,"result":{"deep":' + deep + b',"n":2}}')

    assert message.fields is not None
    assert bytes((parts_of(message.fields["result"]) or {})["deep"]) == deep
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    assert [bytes(each) for each in items_of(b"[" + nested + b",2]") or ()] == [nested, b"2"]


def test_a_value_that_is_nested_too_deeply_is_none_of_pythons() -> None:
    with pytest.raises(ValueError):
        value_of(b"[" * 100_000 + b"]" * 100_000)


def test_values_are_those_that_python_reads() -> None:
    found = value_of(rb'{"half": "\ud83d", "n": [NaN, -Infinity, 1e400], "big": 12345678901234567890123}')

    assert repr(found) == repr(
        {"half": r"\ud83d", "n": [float("nan"), float("-inf"), float("inf")], "big": 12345678901234567890123}
    )


@pytest.mark.thorough("many megabytes")
def test_a_long_message_is_split_and_has_no_more_parts_than_are_looked_at() -> None:
    long = json.dumps({"id": 1, "a": [{"b": 'a "quoted" text\\'}] * (SHORT_BYTES // 20)}).encode()
    assert dumps(parts_of(long)) == long.replace(b'"id": 1, "a": ', b'"id":1,"a":')

    many = b"[" + b" 0," * MAX_PARTS + b"0]"
    assert items_of(many) is None
    assert Message(many).problem == "it has too many parts"


@pytest.mark.parametrize(
    "whole",
    [b"[", b"[1, 2", b'{"a": 1', b'{"a" 1}', b"{1: 2}", b'{"a": 1}}', b'x{"a": 1}', b'{"a": 1]', b'{"a": "}'],
)
def test_what_is_no_object_has_no_parts(whole: bytes) -> None:
    assert parts_of(whole) is None
    assert items_of(whole) is None
    assert Message(whole).problem


def test_a_byte_order_mark_is_no_part_of_a_message() -> None:
    message = Message(b'\xef\xbb\xbf{"id": 1}')

    assert bytes(message.whole) == b'{"id": 1}'
    assert message.fields == {"id": Raw(b"1")}


@given(values, st.sampled_from(["\n", "\r\n"]))
def test_a_message_on_one_line_has_the_same_values(value: Any, end: str) -> None:
    whole = json.dumps({"a": value, "raw": "BREAK"}, indent=1).replace("\n", end).replace("BREAK", f"x{end}y")

    line = bytes(Message(whole.encode()).on_one_line().whole)

    assert b"\n" not in line
    assert b"\r" not in line
    assert repr(json.loads(line)) == repr(json.loads(whole, strict=False))


def test_only_values_are_changed_and_the_others_keep_their_escapes() -> None:
    whole = rb'{"{{k}}": ["{{a}}", "\u007b", {"n": 1.0, "half": "\ud83d {{a}}"}]}'

    changed = map_strings(whole, lambda text: text.replace("{{a}}", "é"), re.compile(rb"\{\{"))

    assert bytes(changed).decode() == r'{"{{k}}": ["é", "\u007b", {"n": 1.0, "half": "\\ud83d é"}]}'


def test_the_first_members_of_a_message_are_known_before_its_end() -> None:
    begun = first_parts_of(b'{"jsonrpc": "2.0", "id": 7, "result": {"content": [{"id": 8')

    assert begun == {"jsonrpc": Raw(b'"2.0"'), "id": Raw(b"7")}


def test_a_long_text_is_read_as_a_file() -> None:
    line = 'a "line" of a long text \N{GRINNING FACE}\n'
    text = line * (LONG_BYTES // 32)
    content = Text((Raw(json.dumps(text).encode()), Raw(b'"end"')))

    stored = content.to_store()

    assert not isinstance(stored, str)
    assert BufferedReader(stored).read().decode() == f"{text}\nend"
    assert Text((Raw(b'"short"'),)).to_store() == "short"
