"""Long strings of a message are set aside, read by windows, and put back byte for byte."""

from __future__ import annotations

import json
from io import BufferedReader
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.integrations.gateway.long_strings import LONG_BYTES, Message, StringReader

LONG = 20
WINDOW = 14
"""Not much more than the longest escape, so that windows end everywhere."""

texts = st.text(st.sampled_from('a"\\\n\té😀{}:,u0dD') | st.characters(codec="utf-8"), max_size=60)
values = st.recursive(
    texts | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def decoded(literal: bytes) -> str:
    return BufferedReader(StringReader(memoryview(literal), WINDOW)).read().decode()


def put_back(value: Any, message: Message) -> Any:
    match value:
        case str() if value in message.strings:
            return decoded(bytes(message.strings[value].literal))
        case list():
            return [put_back(each, message) for each in value]
        case dict():
            return {put_back(key, message): put_back(each, message) for key, each in value.items()}
        case _:
            return value


@given(values, st.booleans())
def test_what_is_left_has_short_strings_and_all_of_it_can_be_restored(value: Any, is_ascii: bool) -> None:
    whole = json.dumps(value, ensure_ascii=is_ascii).encode()

    message = Message.of(whole, LONG, WINDOW)

    assert message.restored(message.text) == whole
    left = json.loads(bytes(message.text))
    assert put_back(left, message) == value
    for string in message.strings.values():
        assert len(string.literal) >= LONG


@given(texts, st.booleans())
def test_a_string_is_decoded_the_same_however_windows_cut_it(text: str, is_ascii: bool) -> None:
    assert decoded(json.dumps(text, ensure_ascii=is_ascii)[1:-1].encode()) == text


parts_of_strings = st.sampled_from([r"\ud83d", r"\ude00", r"\\", r"\n", "u", "d83d", "é", r"\u00e9"])


@given(st.lists(parts_of_strings, max_size=20).map("".join))
def test_halves_of_characters_are_shown_as_text(literal: str) -> None:
    assert decoded(literal.encode()) == _with_escapes(json.loads(f'"{literal}"'))


def _with_escapes(text: str) -> str:
    return "".join(f"\\u{ord(each):04x}" if 0xD800 <= ord(each) <= 0xDFFF else each for each in text)


@given(st.binary(max_size=80) | texts.map(lambda text: ('{"a": "' + text).encode()))
def test_what_is_no_json_is_restored_too(whole: bytes) -> None:
    message = Message.of(whole, LONG, WINDOW)

    assert message.restored(message.text) == whole


@pytest.mark.parametrize("literal", [b"\xff" * 30, b"\x80" * 30, b"\\u12" + b"\xc3" * 30, b"a\\"])
def test_a_string_that_is_none_is_refused(literal: bytes) -> None:
    with pytest.raises(ValueError):
        decoded(literal)


def test_equal_strings_have_one_token_and_a_short_message_has_none() -> None:
    text = "x" * (LONG_BYTES + 1)
    twice = Message.of(json.dumps([text, "short", text]).encode())

    [first, short, second] = json.loads(bytes(twice.text))
    assert (first, short) == (second, "short")
    assert len(twice.strings) == 1
    assert Message.of(b'["short"]').strings == {}
