"""Long values of a message are set aside, read by windows, and put back byte for byte."""

from __future__ import annotations

import json
from io import BufferedReader
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.integrations.gateway.long_values import LONG_BYTES, LongJson, LongString, Message, StringReader

LONG = 20
WINDOW = 14
"""Not much more than the longest escape, so that windows end everywhere."""

texts = st.text(st.sampled_from('a"\\\n\té😀{}:,u0dD') | st.characters(codec="utf-8"), max_size=60)
names = st.sampled_from(["structuredContent", '"structuredContent', "result", "content"])
values = st.recursive(
    texts | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts | names, inner, max_size=3),
    max_leaves=8,
)


def decoded(literal: bytes) -> str:
    return BufferedReader(StringReader(memoryview(literal), WINDOW)).read().decode()


def put_back(value: Any, message: Message) -> Any:
    match value:
        case str() if value in message.long_values:
            match message.long_values[value]:
                case LongString(json=quoted):
                    return decoded(bytes(quoted[1:-1]))
                case LongJson(json=inner):
                    return put_back(json.loads(bytes(inner)), message)
        case list():
            return [put_back(each, message) for each in value]
        case dict():
            return {put_back(key, message): put_back(each, message) for key, each in value.items()}
        case _:
            return value


@given(values, st.booleans())
def test_what_is_left_has_short_values_and_all_of_it_can_be_restored(value: Any, is_ascii: bool) -> None:
    whole = json.dumps(value, ensure_ascii=is_ascii).encode()

    message = Message.of(whole, LONG, WINDOW)

    assert message.restored(message.text) == whole
    left = json.loads(bytes(message.text))
    assert put_back(left, message) == value
    for each in message.long_values.values():
        assert len(each.json) >= LONG


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
    assert len(twice.long_values) == 1
    assert Message.of(b'["short"]').long_values == {}


@pytest.mark.parametrize("window", [WINDOW, 1 << 18])
@pytest.mark.parametrize(
    "structured",
    [
        {"rows": [{"id": 1, "name": "a } in a name"}] * 40},
        {"deep": {"a": [[[[{"b": ["\\", '"', "]"]}]]]] * 9}},
        {"structuredContent": {"rows": [1] * 40}},
        [{"id": number} for number in range(40)],
    ],
)
def test_a_long_structured_content_is_read_from_where_it_stands(structured: Any, window: int) -> None:
    result = {
        "content": [{"type": "text", "text": "short"}],
        "structuredContent": structured,
        "isError": False,
    }
    whole = json.dumps({"id": 1, "result": result}).encode()

    message = Message.of(whole, LONG * 2, window)

    [(token, found)] = message.long_values.items()
    assert json.loads(bytes(message.text))["result"] == {**result, "structuredContent": token}
    assert json.loads(BufferedReader(found.open()).read()) == structured
    assert message.restored(message.text) == whole


def test_long_strings_in_a_long_structured_content_are_stored_with_it() -> None:
    structured = {"long": "x" * 90, "rows": [{"id": number} for number in range(90)]}
    message = Message.of(json.dumps({"structuredContent": structured}).encode(), LONG, WINDOW)

    stored = message.to_store(json.loads(bytes(message.text))["structuredContent"])

    assert not isinstance(stored, str)
    assert json.loads(stored.read()) == structured
    assert len(message.long_values) == 2


def test_a_long_string_in_a_short_structured_content_is_stored_with_it() -> None:
    structured = {"rows": ["x" * (LONG_BYTES + 1), 1]}
    message = Message.of(json.dumps({"structuredContent": structured}).encode())

    stored = message.to_store(json.dumps(json.loads(bytes(message.text))["structuredContent"]))

    assert not isinstance(stored, str)
    assert json.loads(stored.read()) == structured


@given(values.map(json.dumps) | texts, st.integers(0, 30))
def test_what_has_no_end_is_restored_too(text: str, cut: int) -> None:
    whole = ('{"structuredContent": [[' + text).encode()
    whole = whole[: len(whole) - cut]

    message = Message.of(whole, LONG, WINDOW)
    assert message.restored(message.text) == whole
