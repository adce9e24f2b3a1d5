"""Each kind of text is recognised, and what its preview states is true."""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.text.json_pointer import ValueFinder
from fdstore.text.previews import KINDS, Preview, preview_of, sample_text
from fdstore.text.previews.sample import WHOLE_BYTES
from tests.thorough import sample, thorough
from tests.unit.text.previews import examples
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


pieces = st.sampled_from([text.splitlines(keepends=True) for text, _ in EXAMPLES.values()])
Parts = list[tuple[list[str], int, int]]


@given(st.lists(st.tuples(pieces, st.integers(0, 9), st.sampled_from([1, 4, 200, 20_000])), max_size=4))
@example([(["[page 2]\n", " [page 7]\n", "[page 3]\n", "the end\n"], 0, 1)])
@example([(["[page 1]\r\n", "The year\r\n", "[page 2]\r\n", "the end\r\n"], 0, 1)])
def test_no_kind_is_passed_over_that_would_recognise_the_text(parts: Parts) -> None:
    text = "".join("".join(lines[start:] or lines) * times for lines, start, times in parts)[:400_000]
    sample = sample_text(text)

    first = next((found for describe, _ in KINDS if (found := describe(sample))), None)

    found = preview_of(sample, 4000)
    assert (found and found.kind) == (first and first.kind)


@pytest.mark.parametrize("name", PLAIN)
def test_any_other_text_has_no_preview_of_a_kind(name: str) -> None:
    assert preview_of(sample_text(PLAIN[name]), 4000) is None


def test_the_counts_of_json_that_is_cut_are_of_the_part_that_is_named() -> None:
    text = json.dumps([{"id": number, "tags": ["a", "b"]} for number in range(100_000)])

    found = describe(text)

    kept = int(found.of.removeprefix("chars 1-"))
    items = json.loads(text[:kept] + "]")
    assert f"array of {len(items)}" in found.text.split("\n")
    assert f"    id: {len(items)} integers, 0 to {len(items) - 1}" in found.text.split("\n")
    assert found.text.startswith("the text goes on")


def test_items_that_were_not_decoded_are_counted_and_the_shape_says_how_many_were() -> None:
    rows = [{"id": number, "tags": ["a"] * (number % 3)} for number in range(30_000)]

    found = describe(
        json.dumps({"rows": rows, "more": {f"k{n}": [n] for n in range(20_000)}, "total": 30_000})
    )

    lines = found.text.split("\n")
    assert found.of == "all"
    assert lines[:3] == ["object", "a part of it: #J/rows/0/id", "  rows: array of 30000"]
    items = re.fullmatch(r"    (\d+) of its 30000 items: (\d+) objects", lines[3])
    assert items is not None
    assert items[1] == items[2]
    assert 100 < int(items[1]) < 30_000
    assert "  total: integer, e.g. 30000" in lines
    [entries] = [line for line in lines if line.startswith("    20000 keys, ")]
    assert re.search(r"; the values of \d+ of them: \d+ arrays of 1$", entries)


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


@given(st.lists(documents, min_size=1, max_size=5), st.booleans())
def test_the_pointer_that_the_shape_of_json_shows_is_that_of_a_value(
    values: list[object], in_lines: bool
) -> None:
    lines = [json.dumps({"value": each}) for each in values]
    text = "".join(f"{line}\n" for line in lines) if in_lines else json.dumps(values)

    found = preview_of(sample_text(text), 4000)

    assert found is not None
    [part] = [line for line in found.text.split("\n") if line.startswith("a part of it: ")]
    finder = ValueFinder("fd:1", part.removeprefix("a part of it: #J"), lines=len(lines) > 1 and in_lines)
    finder.feed(text)
    finder.feed(None)
    json.loads(text[finder.span.start : finder.span.end])


@given(st.lists(documents, min_size=8, max_size=8), st.integers(0, 400))
def test_json_cut_anywhere_states_what_is_before_the_cut(values: list[object], cut: int) -> None:
    text = json.dumps(values * 400, ensure_ascii=False)
    text = text[: max(60_001, len(text) - cut)]  # is JSON no more
    found = preview_of(sample_text(text), 4000)

    if found is not None and found.of != "all":
        part = text[: int(found.of.removeprefix("chars 1-"))]
        items = next(line for line in found.text.split("\n") if line.startswith("array of "))
        assert (values * 400)[: int(items.split()[2])] == json.loads(part + "]")


def test_of_many_headings_the_upper_levels_are_shown_with_their_lines() -> None:
    text = "# Book\n\n"
    for chapter in range(12):
        text += f"## Chapter {chapter}\n\n" + "Words.\n\n" * 20
        text += "".join(f"### Section {chapter}.{section}\n\nMore words.\n\n" for section in range(9))
    lines = text.split("\n")

    found = describe(text)

    said, *shown = found.text.split("\n")[10:]
    assert (found.kind, found.of) == ("outline", "all")
    assert said == "121 headings, of which 13 are of the upper levels:"
    assert len(shown) == 13
    for each in shown:
        number, _, heading = each.partition(":")
        assert lines[int(number) - 1] == heading


numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(numbers | st.none(), min_size=5, max_size=30))
def test_the_least_and_the_greatest_number_are_those_of_python(values: list[float | None]) -> None:
    rows = [{"v": value} for value in values]
    cells = ["" if value is None else str(value) for value in values]

    shape = describe(json.dumps(rows)).text
    table = describe("\n".join(["v,w", *(f"{cell},1" for cell in cells)]) + "\n").text

    for kind, name in ((int, "integers"), (float, "numbers")):
        found = [value for value in values if isinstance(value, kind)]
        if len(found) > 1:
            [ends] = re.findall(rf"{len(found)} {name}, (\S+) to (\S+?)(?:,|$)", shape, re.MULTILINE) or [
                re.findall(rf"{len(found)} {name}, all (\S+?)(?:,|$)", shape, re.MULTILINE) * 2
            ]
            assert [kind(each) for each in ends] == [min(found), max(found)]
    assert ("null" in shape) == (None in values)
    filled = [value for value in values if value is not None]
    if filled:
        [line] = re.findall(r"column 1: v - (.*)", table)
        ends = re.findall(r"[-+.e0-9]+", line.partition(", ")[2].partition(", ")[0].replace("to", ""))
        assert (float(ends[0]), float(ends[-1])) == (float(min(filled)), float(max(filled)))
        assert line.endswith(f", {len(values) - len(filled)} empty") == (len(filled) < len(values))


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ("2024-01-31", "2026-02-01", "dates, 2024-01-31 to 2026-02-01"),
        (
            "2024-01-31T09:00:00Z",
            "2024-01-31T10:00:00Z",
            "dates, 2024-01-31T09:00:00Z to 2024-01-31T10:00:00Z",
        ),
        ("2024-01-31 09:00", "2024-01-31", ""),
        ("2024-01-31T09:00+02:00", "2024-01-31T10:00+04:00", ""),
        ("1.2.2024", "2.1.2025", ""),
    ],
)
def test_the_first_and_the_last_date_of_one_form_are_shown(first: str, last: str, said: str) -> None:
    dates = [last, *[first] * 4]

    shape = describe(json.dumps([{"at": each} for each in dates])).text
    table = describe("at,n\n" + "".join(f"{each},1\n" for each in dates)).text

    assert (f"    at: 5 strings, {said}" in shape.split("\n")) == bool(said)
    assert (f"column 1: at - 5 {said}" in table.split("\n")) == bool(said)


def test_a_number_of_thousands_of_digits_is_no_end_of_a_column() -> None:
    found = describe("id,n\n" + f"{'9' * 5000},1\n" * 5).text

    assert "column 1: id - integers, e.g. 9999" in found


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
    assert shown == [f"2 lines look like errors in {found.of}:", f"7:{log[6]}", f"99990:{log[99_989]}"]
    assert found.tail_chars == 800


def test_an_error_in_the_middle_of_a_log_is_found() -> None:
    log = [f"2026-11-22T13:07:00Z INFO item {number} " + "x" * 60 for number in range(1, 3001)]
    log[1471] = "2026-11-22T13:07:00Z ERROR disk full"

    found = describe("\n".join(log))

    assert (found.kind, found.of) == ("log", "all")
    assert found.text.split("\n")[3:] == ["1 line looks like an error:", f"1472:{log[1471]}"]


def test_a_failed_assertion_in_the_middle_of_long_test_output_is_found() -> None:
    output = [f"tests/test_a.py::test_{number} PASSED" for number in range(1, 30_001)]
    output[20_000] = "E   assert 2 == 3"

    found = describe("\n".join(output))

    assert (found.kind, found.of) == ("test output", "all")
    assert found.text.split("\n")[3:] == ["1 line looks like an error:", "20001:E   assert 2 == 3"]


def test_where_lines_with_errors_are_too_many_their_count_says_of_which_lines_it_is() -> None:
    log = [f"13:07:00 {'ERROR' if number % 2 else 'INFO'} item {number}" for number in range(1, 50_001)]

    found = describe("\n".join(log))

    first, last = re.fullmatch(r"lines 1-(\d+) and (\d+)-50000", found.of).groups()  # type: ignore[union-attr]
    looked_at = [*log[: int(first)], *log[int(last) - 1 :]]
    errors = sum("ERROR" in line for line in looked_at)
    assert found.text.split("\n")[3] == f"{errors} lines look like errors in {found.of}:"
    assert errors >= 1000
    assert f"49999:{log[49_998]}" in found.text.split("\n")


INSIDE = {
    "compiler errors, of gcc": (
        "src/a.c:3:5: error: unknown type name 'x'",
        [
            "lines that report 1 error and 0 warnings in 1 file",
            "1472:src/a.c:3:5: error: unknown type name 'x'",
        ],
    ),
    "compiler errors, of Rust": (
        "error[E0308]: mismatched types\n --> src/main.rs:2:18",
        ["1472:error[E0308]: mismatched types --> src/main.rs:2:18"],
    ),
    "traceback, of Python": (
        examples.PYTHON,
        [
            "1 traceback:",
            "Python traceback in lines 1472-1478, 2 frames",
            "1478:ValueError: no such day",
            '1476:  File "/app/load.py", line 3, in load',
        ],
    ),
    "traceback, of Java": (
        examples.JAVA,
        [
            "1 traceback:",
            "1475:Caused by: java.io.IOException: reset",
            "1476:\tat com.example.Wire.read(Wire.java:99)",
        ],
    ),
    "traceback, of Node": (examples.NODE, ["1474:    at load (/app/index.js:3:9)"]),
    "traceback, of Go": (examples.GO, ["Go traceback in lines 1472-1482, 3 frames", "1476:\t/app/main.go:9"]),
}


@pytest.mark.parametrize("kind", INSIDE)
def test_an_error_inside_longer_output_of_no_other_kind_is_shown_after_the_beginning(kind: str) -> None:
    error, lines = INSIDE[kind]
    output = [f"copying the file number {number} of those that were found" for number in range(1, 3001)]
    output[1471:1471] = error.removesuffix("\n").split("\n")

    found = describe("\n".join(output))

    shown = found.text.split("\n")
    assert (found.kind, found.of) == (kind.partition(",")[0], "all")
    assert shown[:3] == [f"{number}:{output[number - 1]}" for number in (1, 2, 3)]
    assert set(lines) <= set(shown)


def test_of_many_tracebacks_inside_a_text_the_first_and_the_last_are_shown() -> None:
    output = "".join(
        f"step {number}\n{examples.PYTHON.replace('day', f'day {number}')}" for number in range(9)
    )

    found = describe(output + "going on\n" * 9)

    lines = found.text.split("\n")
    assert lines[3] == "9 tracebacks:"
    assert [line for line in lines if ":ValueError" in line] == [
        f"{number * 8 + 8}:ValueError: no such day {number}" for number in (0, 7, 8)
    ]
    assert "-- 6 more tracebacks --" in lines


def test_a_cause_without_frames_ends_a_traceback() -> None:
    stack = examples.JAVA.replace("\tat com.example.Wire.read(Wire.java:99)\n", "")

    found = describe(stack + "going on\n" * 9)

    assert "Java traceback in lines 1-3, 2 frames" in found.text.split("\n")


def test_a_document_that_quotes_a_traceback_is_none() -> None:
    text = f"# What went wrong\n\n```\n{examples.PYTHON}```\n" + "More words.\n" * 100

    assert preview_of(sample_text(text), 4000) is None


def test_a_long_diff_is_counted_whole() -> None:
    made = "".join(
        f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1,1 +1,30 @@\n-x\n" + "+line\n" * 30
        for name in range(1000)
    )

    found = describe(made, 8000)

    assert (found.of, found.text.split("\n")[0]) == ("all", "1000 files, +30000 -1000")


LONG = {
    "plain": "words number {n} of a text of no kind",
    "a log": "13:07:00 INFO request {n} handled in {n} ms",
    "a log with errors in each line": "13:07:00 ERROR request {n} failed",
    "a log of no errors": "13:07:00 INFO request {n} errors=0 failed=0",
    "warnings": "a/b.c:{n}: warning: unused",
    "JSON lines": '{{"id": {n}, "name": "x", "tags": ["a", "b"]}}',
    "a JSON array": '{{"id": {n}, "name": "a name", "note": "some words about it"}},',
    "numbers in JSON": "{n},",
}


@pytest.mark.parametrize("name", sample(LONG, 2, "more kinds"))
@pytest.mark.parametrize("chars", [2_900_000, *thorough("a larger one", 10_000_000)])
def test_the_preview_of_megabytes_costs_some_passes_over_the_bytes(name: str, chars: int) -> None:
    line = LONG[name].format(n=123_456) + "\n"
    text = line * (chars // len(line))
    text = f"[{text}0]" if text.endswith(",\n") else text

    # counting the lines of 10 MB that have some 50 characters, as is done when they are stored
    measure = "words number 123456 of a text of no kind, no kind\n" * 200_000
    pass_s = min(_seconds(lambda: measure.count("\n")) for _ in range(5))
    preview_s = min(
        _seconds(lambda: preview_of(sample_text(text, len(text) // len(line)), 2400)) for _ in range(5)
    )

    assert preview_s < 12 * pass_s


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


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


# what may be looked at is counted, up to its last byte

SESSION = (
    "======= test session starts =======\ncollected 2 items\n\ntests/test_a.py .F\n\n"
    "======= FAILURES =======\nE   assert 2 == 3\nFAILED tests/test_a.py::test_b - assert 2 == 3\n"
    "======= 1 failed, 1 passed in 0.1s =======\n"
)


def built(lines: int) -> str:
    """Return output of a build, of no kind."""
    return "".join(f"gcc -O2 -c src/module_{each}.c -o build/module_{each}.o\n" for each in range(lines))


def padded(beginning: str, line: str, chars: int) -> str:
    """Return a text of exactly so many characters, which ends with as many of these lines as fit."""
    count, rest = divmod(chars - len(beginning), len(line))
    return beginning + line * (count - 1) + line[:-1] + " " * rest + "\n"


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
@pytest.mark.parametrize("last", ["5000", '"5000"'], ids=["plain", "quoted"])
def test_all_rows_of_a_table_are_counted_and_its_columns_described_by_all_of_them(
    delimiter: str, last: str
) -> None:
    rows = [f"{number}{delimiter}name {number % 7}{delimiter}{number}.5" for number in range(5000)]
    rows.append(f"{last}{delimiter}another{delimiter}none")

    found = describe("\n".join([f"id{delimiter}name{delimiter}price", *rows]) + "\n")

    lines = found.text.split("\n")
    assert found.of == "all"
    assert lines[0].endswith("; 5001 rows after the header")
    assert lines[1:4] == [
        "column 1: id - 5001 integers, 0 to 5000",
        "column 2: name - texts, 8 different, e.g. name 0",
        "column 3: price - texts, 5001 different, e.g. 0.5",
    ]


def test_rows_of_a_table_may_have_line_ends_in_their_cells() -> None:
    text = "id,note\n" + '1,"a\nb"\n' * 30_000

    found = describe(text)

    assert (found.of, found.text.split("\n")[0].partition("; ")[2]) == ("all", "30000 rows after the header")


def test_a_table_beyond_the_bound_says_which_of_its_lines_are_counted() -> None:
    for row in ("1,some words\n", '"1","some words"\n', '1,"some\nwords"\n'):
        text = "id,note\n" + row * (WHOLE_BYTES // len(row) + 1)

        found = describe(text)

        last = int(found.of.removeprefix("lines 1-"))
        rows = (last - 1) // row.count("\n")
        heading = found.text.split("\n")[0]
        assert (
            f"; {rows} rows after the header in {found.of}; the text has {text.count(chr(10))} lines"
            in heading
        )


def test_a_wide_table_says_by_how_many_rows_its_columns_are_described() -> None:
    text = "id,note\n" + "1,word\n" * 40_000

    lines = describe(text).text.split("\n")

    assert lines[0].endswith("; 40000 rows after the header")
    assert lines[1] == "the columns in the first 29999 rows:"


def test_an_error_is_counted_up_to_the_bound_and_beyond_it_the_range_is_said() -> None:
    line = "2026-11-22T13:07:00Z INFO request handled, without any trouble at all, as ever before and since\n"
    error = "2026-11-22T13:07:00Z ERROR disk full\n"
    half = line * (WHOLE_BYTES // 2 // len(line))
    for chars, is_whole in ((WHOLE_BYTES, True), (WHOLE_BYTES + 1, False)):
        text = padded(half + error, line, chars)

        found = describe(text)

        assert len(text) == chars
        assert (found.of == "all") == is_whole
        assert ("1 line looks like an error:" in found.text) == is_whole
        assert is_whole or f"0 lines look like errors in {found.of}" in found.text


def test_the_bound_is_of_bytes_whatever_the_letters() -> None:
    line = "13:07:00 INFO größer als äöü\n"
    count = WHOLE_BYTES // len(line.encode())
    error = "13:07:00 ERROR voll\n"

    whole = describe(line * (count // 2) + error + line * (count // 2 - 1))
    cut = describe(line * count + error + line * 99)

    assert whole.of == "all"
    assert "1 line looks like an error:" in whole.text
    assert cut.of.startswith("lines 1-")


@pytest.mark.parametrize("before", [30, 300, 800, 1500])
def test_a_failed_test_session_inside_a_build_is_found_wherever_it_is(before: int) -> None:
    text = built(before) + SESSION + built(2000 - before)

    found = describe(text)

    assert (found.kind, found.of) == ("test output", "all")
    assert f"{before + 7}:E   assert 2 == 3" in found.text.split("\n")


@pytest.mark.parametrize("frames", [120, 150, 2000])
def test_a_long_traceback_inside_other_output_keeps_its_message_and_last_frame(frames: int) -> None:
    calls = "".join(f'  File "/app/a.py", line {n}, in f\n    f({n})\n' for n in range(1, frames + 1))
    trace = f"Traceback (most recent call last):\n{calls}ValueError: no such day\n"

    found = describe(built(100) + trace + built(100))

    lines = found.text.split("\n")
    assert found.kind == "traceback"
    assert f"Python traceback in lines 101-{2 * frames + 102}, {frames} frames" in lines
    assert f"{2 * frames + 102}:ValueError: no such day" in lines
    assert f'{2 * frames + 100}:  File "/app/a.py", line {frames}, in f' in lines


@pytest.mark.parametrize("language", ["Java", "JavaScript", "Go"])
def test_a_long_stack_of_other_languages_is_followed_to_its_end(language: str) -> None:
    begin, frame, per_frame = {
        "Java": ("java.lang.StackOverflowError: deep\n", "\tat com.example.A.f(A.java:3)\n", 1),
        "JavaScript": ("RangeError: deep\n", "    at f (/app/a.js:3:9)\n", 1),
        "Go": ("panic: deep\n\ngoroutine 1 [running]:\n", "main.f()\n\t/app/a.go:3\n", 2),
    }[language]

    found = describe(built(100) + begin + frame * 500 + "\n" + built(100))

    last = 100 + begin.count("\n") + 500 * per_frame
    assert f"{language} traceback in lines 101-{last}, 500 frames" in found.text.split("\n")


@pytest.mark.parametrize("place", [100, 800, 1900])
def test_warnings_of_a_compiler_inside_a_build_are_found_wherever_they_are(place: int) -> None:
    text = built(place) + "a.c:3:5: warning: unused\nb.c:4: warning: unused\n" + built(2000 - place)

    found = describe(text)

    assert (found.kind, found.of) == ("compiler errors", "all")
    assert found.text.startswith("lines that report 0 errors and 2 warnings in 2 files")


def test_all_lines_of_json_lines_are_looked_at() -> None:
    lines = [json.dumps({"id": number}) for number in range(5000)]

    whole = describe("\n".join([*lines, '{"late": 1}']) + "\n")
    broken = preview_of(sample_text("\n".join([*lines[:2500], "no JSON", *lines[2500:]])), 4000)

    assert whole.of == "all"
    assert whole.text.split("\n")[:4] == [
        "JSON in each line: 5001 looked at, of 5001",
        "a part of it: #J/0/id",
        "a line: 5001 objects",
        "  id (in 5000 of 5001): 5000 integers, 0 to 4999",
    ]
    assert broken is None


def test_many_items_of_json_are_counted_also_where_there_are_hundreds_of_thousands() -> None:
    found = describe("[" + "1," * 500_000 + "1]")
    inside = describe('{"rows": [' + "[1, 2]," * 150_000 + "[]]}")

    assert (found.of, found.text.split("\n")[0]) == ("all", "array of 500001")
    assert (inside.of, inside.text.split("\n")[2]) == ("all", "  rows: array of 150001")


def test_all_samples_of_metrics_are_counted() -> None:
    text = "# TYPE a counter\n" + 'a_total{x="1"} 1\n' * 9000 + "# TYPE b gauge\n" + "b 1\n" * 3000
    text += '# TYPE c histogram\nc_bucket{le="1"} 1\nc_sum 2\nc_count 3\nother 4\n'

    found = describe(text)

    assert found.of == "all"
    assert found.text.split("\n") == [
        "3 metric families are declared; 12004 samples, also of 1 name not declared here",
        "1:a counter, 9000 samples",
        "9002:b gauge, 3000 samples",
        "12003:c histogram, 3 samples",
    ]


def test_all_of_a_web_page_is_counted() -> None:
    body = '<H2>Part <b>one</b></H2><p>Words <a class="x" href="y">here</a>.</p><img src="z"><li>item</li>\n'
    text = f"<!doctype html><html><title>A page</title><h1>İ</h1><h3>open<ul>{body * 5000}</ul></html>"

    found = describe(text)

    assert (found.kind, found.of) == ("html outline", "all")
    lines = found.text.split("\n")
    assert lines[:2] == ["title: A page", "5001 headings, 5000 links, 5000 images, 5000 list items"]
    assert lines[2:4] == ["h1: İ", "h2: Part one"]


def test_all_definitions_of_source_code_are_counted() -> None:
    text = "import os\n" + "x = 1\n" * 5000 + "def f(x):\n    return x\n\n\n" * 20 + "class Last:\n    pass\n"

    found = describe(text)

    assert (found.kind, found.of) == ("source code", "all")
    assert found.text.startswith("Python: 21 lines that look like definitions\n5002:def f(x):")


HOSTILE = {
    "comments of HTML": "<!doctype html>" + "<!-- " * 500_000,
    "headings that stay open": "<!doctype html>" + "<h1>" * 700_000,
    "tags that stay open": "<!doctype html>" + "<a " * 900_000,
    "links without an address": "<!doctype html>" + "<a x " * 500_000,
    "colons": "x:y:" * 700_000 + " z\n" + "words\n" * 10,
    "a quoted cell that stays open": 'a,b\n1,"' + "x\n" * 1_400_000,
    "tracebacks that do not end": 'Traceback (most recent call last):\n  File "a", line 1\n' * 50_000,
    "panics": "words\n" * 9 + "panic: x\n\ngoroutine 1 [running]:\n" * 80_000,
    "types of metrics": "# TYPE a counter\na 1\n" * 130_000,
}


@pytest.mark.thorough("a bound of time")
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_more_than_some_passes_a_byte(name: str) -> None:
    assert _seconds(lambda: preview_of(sample_text(HOSTILE[name][:WHOLE_BYTES]), 2400)) < 5
