"""Comments and trailing commas of JSON that people write."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.text.json_spans import items, members, without_comments
from tests.waiting import PATIENCE_S

values = st.recursive(
    st.text(st.sampled_from('a"\\/*,]}\n'), max_size=9) | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\/*'), inner, max_size=3),
    max_leaves=8,
)


@given(values, st.sampled_from(["// why, ]", '/* "why */', "/**/", "//"]))
def test_only_what_is_outside_strings_becomes_blank(value: Any, comment: str) -> None:
    with_comments = "\ufeff" + json.dumps(value, indent=1).replace("\n", f"{comment}\n")

    plain = without_comments(with_comments)

    assert json.loads(plain) == value
    assert len(plain) == len(with_comments)
    assert plain.count("\n") == with_comments.count("\n")


def test_a_trailing_comma_becomes_blank_and_the_places_stay() -> None:
    text = '{"a": [1, // one\n 2, ], /* "*/ "b": "x,}",\n}'

    plain = without_comments(text)

    spans = members(plain, 0)
    assert json.loads(plain) == {"a": [1, 2], "b": "x,}"}
    assert [text[span.start : span.end] for span in spans.values()] == ["[1, // one\n 2, ]", '"x,}"']
    assert [span.value for span in items(plain, spans["a"].start)] == [1, 2]


@pytest.mark.parametrize("text", ["/* no end", '"no end // ,]', "a /", "/*/", "\\"])
def test_what_has_no_end_stays(text: str) -> None:
    assert without_comments(text) == text


@pytest.mark.parametrize("part", ['\\"', '"', "/*", "//", ",", ", ", "/", '"\\'])
def test_no_text_takes_more_than_its_length(part: str) -> None:
    worker = threading.Thread(target=without_comments, args=(part * 200_000,), daemon=True)
    worker.start()

    worker.join(PATIENCE_S)

    assert not worker.is_alive()
