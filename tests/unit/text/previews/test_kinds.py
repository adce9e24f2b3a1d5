"""Each kind of text is recognised, and what its preview states is true."""

from __future__ import annotations

import csv
import difflib
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.text.previews import Preview, preview_of, sample_text
from tests.unit.text.previews.examples import EXAMPLES, PLAIN


def describe(text: str, room: int = 4000) -> Preview:
    found = preview_of(sample_text(text), room)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_kind_is_recognised(kind: str) -> None:
    text, lines = EXAMPLES[kind]

    found = describe(text)

    assert found.kind == kind.partition(",")[0]
    assert found.of == "all"
    for line in lines:
        assert line in found.text.split("\n")


@pytest.mark.parametrize("name", PLAIN)
def test_any_other_text_has_no_preview_of_a_kind(name: str) -> None:
    assert preview_of(sample_text(PLAIN[name]), 4000) is None


def test_the_counts_of_json_that_is_cut_are_of_the_part_that_is_named() -> None:
    text = json.dumps([{"id": number, "tags": ["a", "b"]} for number in range(10_000)])

    found = describe(text)

    kept = int(found.of.removeprefix("chars 1-"))
    items = json.loads(text[:kept] + "]")
    assert f"array of {len(items)}" in found.text.split("\n")
    assert f"    id: {len(items)} integers, e.g. 0" in found.text.split("\n")
    assert found.text.startswith("the text goes on")


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(documents, min_size=1, max_size=5), st.booleans())
def test_every_json_array_has_a_shape_that_counts_its_items(values: list[object], ascii_only: bool) -> None:
    text = json.dumps(values, ensure_ascii=ascii_only)
    found = preview_of(sample_text(text), 4000)

    assert found is not None
    assert (found.kind, found.text.split("\n")[0]) == ("json shape", f"array of {len(values)}")


@given(st.lists(documents, min_size=8, max_size=8), st.integers(0, 400))
def test_json_cut_anywhere_states_what_is_before_the_cut(values: list[object], cut: int) -> None:
    text = json.dumps(values * 400, ensure_ascii=False)
    text = text[: max(60_001, len(text) - cut)]  # is JSON no more
    found = preview_of(sample_text(text), 4000)

    if found is not None and found.of != "all":
        part = text[: int(found.of.removeprefix("chars 1-"))]
        items = next(line for line in found.text.split("\n") if line.startswith("array of "))
        assert (values * 400)[: int(items.split()[2])] == json.loads(part + "]")


def test_a_key_or_a_value_of_json_can_begin_no_line() -> None:
    text = json.dumps({"a\nb": "x\ny", "\u2028": "\x9b"})

    lines = describe(text).text.split("\n")

    assert lines[1:] == [r'  "a\nb": string, e.g. "x\ny"', r'  "\u2028": string, e.g. "\u009b"']


lines_of_files = st.lists(st.sampled_from(["a", "", "-- b", "++ c", "@@ -1 +1 @@", "\\ d"]), max_size=12)


@given(lines_of_files, lines_of_files)
def test_the_lines_of_a_diff_are_counted_by_its_hunks(old: list[str], new: list[str]) -> None:
    made = list(difflib.unified_diff(old, new, "a/x", "b/x", lineterm=""))
    found = preview_of(sample_text("\n".join(["diff --git a/x b/x", *made, ""])), 4000)

    if made:
        added = sum(line.startswith("+") for line in made[2:])
        removed = sum(line.startswith("-") for line in made[2:])
        assert found is not None
        assert found.text == f"1 file, +{added} -{removed}\n1:x +{added} -{removed}"


@given(
    st.lists(
        st.lists(st.text(st.sampled_from('a1.,;"\n '), max_size=4), min_size=3, max_size=3),
        min_size=5,
        max_size=9,
    )
)
def test_the_rows_of_a_table_are_those_of_a_csv_reader(rows: list[list[str]]) -> None:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([["id", "name", "note"], *rows])

    found = preview_of(sample_text(file.getvalue()), 4000)

    assert found is not None
    assert found.kind == "table"
    assert found.text.startswith(f"3 columns, separated by commas; {len(rows)} rows after the header\n")


def test_lines_that_look_like_errors_have_their_numbers_also_at_the_end_of_a_long_log() -> None:
    levels = {7: "ERROR", 99_990: "FATAL", 50_000: "ERROR"}
    log = [f"2026-11-22T13:07:00Z {levels.get(n, 'INFO')} item {n}" for n in range(1, 100_001)]

    found = describe("\n".join(log))

    assert found.kind == "log"
    assert found.of.startswith("lines 1-")
    assert found.of.endswith("-100000")
    shown = found.text.split("\n")[3:]
    assert shown == ["2 lines look like errors in this part:", f"7:{log[6]}", f"99990:{log[99_989]}"]
    assert found.tail_chars == 800


@pytest.mark.parametrize("room", [60, 200, 1000])
@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_preview_and_its_tail_fit_in_the_room(kind: str, room: int) -> None:
    found = describe(EXAMPLES[kind][0], room)

    assert len(found.text) + found.tail_chars <= room


def test_a_diff_of_thousands_of_lines_is_counted_whole_where_the_text_is_in_memory() -> None:
    made = "".join(
        f"--- a/{name}\n+++ b/{name}\n@@ -1,1 +1,30 @@\n-x\n" + "+a line of the file\n" * 30
        for name in range(100)
    )

    found = describe(made, 8000)

    assert (found.of, found.text.split("\n")[0]) == ("all", "100 files, +3000 -100")
    assert found.text.split("\n")[-1] == "3367:b/99 +30 -1"
