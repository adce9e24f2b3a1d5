"""Values of JSON found by pointers, as the standard library reads them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument, NoSuchValue
from fdstore.text import json_pointer
from fdstore.text.json_pointer import MAX_DEPTH, ValueFinder, parse_pointer, pointer_to

keys = st.text(st.sampled_from('a0~/"\\é\u2028\U0001f600 \n'), max_size=3)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(st.sampled_from('a"\\/~\n\x7f€\U0001f600'), max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
SYNTAX = '{}[],:"\\ 0-1.eEtfnNI\x01u'


@pytest.fixture(scope="module", params=[64, json_pointer.WINDOW_CHARS], ids=["small-windows", "windows"])
def window(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run with the windows as they are, and with ones that most values are longer than."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pointer, "WINDOW_CHARS", request.param)
        patch.setattr(json_pointer, "PATIENCE_CHARS", request.param // 4)
        yield


def find(text: str, pointer: str, piece: int = 50) -> str:
    """Return the text of a value, of a text that comes in pieces."""
    finder = ValueFinder("fd:1", pointer)
    for _ in range(2):
        pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
        for each in [*pieces, None]:
            if not finder.done:
                finder.feed(each)
        if not finder.must_begin_again:
            break
        finder = ValueFinder("fd:1", pointer, lines=True)
    return text[finder.span.start : finder.span.end]


def every_value(value: Any, parts: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield parts, value
    if isinstance(value, (list, dict)):
        for key, each in enumerate(value) if isinstance(value, list) else value.items():
            yield from every_value(each, (*parts, key))


def is_same(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)  # NaN is not equal to itself, 1 equals 1.0


@pytest.mark.usefixtures("window")
@given(
    value=values,
    is_ascii=st.booleans(),
    indent=st.sampled_from([None, 0, 3]),
    around=st.sampled_from([("", ""), ("\ufeff \n", "\r\n\t"), (" " * 200, " " * 200)]),
    piece=st.integers(1, 90),
)
def test_a_value_is_the_source_text_of_what_the_standard_library_finds_there(
    value: Any, is_ascii: bool, indent: int | None, around: tuple[str, str], piece: int
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent).join(around)

    for parts, each in every_value(value):
        found = find(text, pointer_to(parts), piece)

        assert is_same(json.loads(found), each)
        assert found == found.strip()


@pytest.mark.usefixtures("window")
@given(records=st.lists(values, min_size=2, max_size=5), gap=st.sampled_from(["\n", "\r\n", "\n\n \n"]))
def test_the_first_part_of_a_pointer_into_json_lines_is_the_record(records: list[Any], gap: str) -> None:
    lines = [json.dumps(record) for record in records]
    text = gap.join(lines) + gap

    assert find(text, "") == text.strip()
    for number, record in enumerate(records):
        for parts, each in every_value(record, (number,)):
            assert is_same(json.loads(find(text, pointer_to(parts))), each)
    with pytest.raises(NoSuchValue, match=f"#J is {len(records)} records of JSON lines"):
        find(text, f"/{len(records)}")


@pytest.mark.usefixtures("window")
@given(
    value=values,
    changes=st.lists(
        st.tuples(st.integers(0, 999), st.sampled_from([*SYNTAX, ""]), st.booleans()), max_size=3
    ),
    pointer=st.sampled_from(["", "/a", "/0", "/0/a/0"]),
)
@example(value=[1], changes=[(2, "]", False)], pointer="")
def test_a_text_is_refused_if_the_standard_library_refuses_it(
    value: Any, changes: list[tuple[int, str, bool]], pointer: str
) -> None:
    text = json.dumps(value)
    for at, new, replaces in changes:
        at %= len(text) + 1
        text = text[:at] + new + text[at + replaces :]
    try:
        json.loads(text)
    except ValueError:
        with pytest.raises(InvalidArgument, match="fd:1 is not JSON: "):
            find(text, pointer)
    else:
        with suppress(NoSuchValue):
            find(text, pointer)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no value at line 1, character 1"),
        ('{"a": 1,\n}', "a key in quotes is needed at line 2, character 10"),
        ('{"a" 1}', "a colon is needed at line 1, character 6"),
        ("[1\n 2]", r"a comma or \] is needed at line 2, character 5"),
        ("[1,]", "a value is needed at line 1, character 4"),
        ('["a\tb"]', "a control character inside a string at line 1, character 4"),
        (r'["\x"]', "a wrong escape at line 1, character 3"),
        ('["a', "it ends inside a string at line 1, character 4"),
        ('{"a":', "it ends before a value at line 1, character 6"),
        ("[1] 2", "more follows the value in its line at line 1, character 5"),
        (
            "[" * 20_000,
            f"nested deeper than {MAX_DEPTH} levels at line 1, character {MAX_DEPTH + 2}",
        ),
    ],
)
def test_what_is_not_json_is_refused_with_the_place(text: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=f"fd:1 is not JSON: .*{problem}"):
        find(text, "/a")


@pytest.mark.parametrize(
    ("text", "pointer", "there"),
    [
        ('{"a": [1, 2], "b": 3}', "/a/2/x", "fd:1#J/a/2/x does not exist; fd:1#J/a is an array of 2"),
        ('{"a": [1, 2], "b": 3}', "/c", "fd:1#J/c does not exist; fd:1#J is an object with 'a', 'b'"),
        ('{"a": {}}', "/a/b", "fd:1#J/a is an object without keys"),
        ('{"a": "text"}', "/a/0", "fd:1#J/a is a string"),
        ("[1]", "/0/0", "fd:1#J/0 is a number"),
        ("[true]", "/0/0", "fd:1#J/0 is true"),
        *(
            ("[1, 2]", f"/{index}", "fd:1#J is an array of 2")
            for index in ("-", "01", "-1", "1.0", "", "\u0661")
        ),
        (json.dumps(dict.fromkeys(map(str, range(20)))), "/x", "'10', '11', ..."),
    ],
)
def test_what_is_not_there_is_not_found_and_the_longest_part_that_is_there_is_named(
    text: str, pointer: str, there: str
) -> None:
    with pytest.raises(NoSuchValue) as caught:
        find(text, pointer)

    assert there in str(caught.value)


def test_of_a_key_that_stands_twice_the_last_counts_at_every_depth() -> None:
    text = r'{"a": {"b": 1, "b": 2}, "\u0061": {"b": 3, "c": 4, "\u0062": 5}, "z": {"a": 0}, "z": 1}'

    assert find(text, "/a/b") == "5"
    assert find(text, "/z") == "1"
    with pytest.raises(NoSuchValue, match="#J/z is a number"):
        find(text, "/z/a")


@pytest.mark.parametrize("pointer", ["a", "/~", "/a~2", "/a/~~0", "/" + "x" * 5000, "/\ud800"])
def test_what_is_no_pointer_is_refused(pointer: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_pointer(pointer)


@given(parts=st.lists(keys | st.integers(0, 99), max_size=5))
def test_a_pointer_holds_any_key(parts: list[str | int]) -> None:
    assert parse_pointer(pointer_to(tuple(parts))) == tuple(map(str, parts))


def test_numbers_strings_and_keys_of_any_length_are_passed_over() -> None:
    digits, text, escapes = "7" * 10_000, "x" * 400_000, "\\u00e9\\\\" * 50_000
    document = f'{{"{text}": {digits}, "s": "{text}{escapes}", "d": {math.pi}, "n": {digits}}}'

    assert find(document, "/d", 100_000) == str(math.pi)
    assert find(document, "/n", 100_000) == digits
    assert find(document, "/s", 100_000) == f'"{text}{escapes}"'


def test_deep_nesting_takes_no_recursion() -> None:
    deep = "[" * 5000 + "]" * 5000
    pointer = "/0" * 2000

    assert find(f'{{"deep": {deep}, "after": 1}}', "/after", 1000) == "1"
    assert find(deep, pointer, 1000) == "[" * 3000 + "]" * 3000
