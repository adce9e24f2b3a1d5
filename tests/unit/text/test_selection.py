"""Accepted spellings of descriptors and selectors, and the range of numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import FDStoreError, InvalidArgument, PageOutOfRange, PositionOutOfRange
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.selection import (
    FIRST_PAGE,
    Part,
    Selector,
    clamp,
    fd_id,
    fd_ids,
    number,
    parse_request,
    selector,
)

HOSTILE_IDS = [
    *("", " ", "fd:", "fd", "fd:0", "fd:00", "fd:01", "fd:-1", "fd:+1", "fd: 1", " fd:1", "fd:1 ", "fd:1\n"),
    *("fd:1}{x", "fd:{1}", "fd:1:pages", "fd:1.0", "fd:1e3", "fd:0x1", "FD:1", "fd_1", "fd/1", "fd:--1"),
    *("fd:\uff11", "\uff13", "\u0663", "fd:\u00b2", "fd:1\0", "fd:1\r\n", "1\n", "-1", "0", "01", "1_000"),
    *("ref:", "ref: a", "ref:a b", "ref:a\n", "ref:a/b", "ref:é", "ref:a:b", "ref:" + "a" * 65, "REF:a"),
    "ref-a",
    *("fd:" + "9" * 17, "9" * 5000, "fd:" + "9" * 5000, "fd:9007199254740993", "9999999999999999"),
    *("x" * 10**6, "\ud800"),
]
NOT_NUMBERS: list[Any] = [
    *(True, False, None, 1.0, 0.5, math.nan, math.inf, -math.inf, "1", "3", b"1", [1], {}, 1j, object()),
    *(0, -1, MAX_INTEGER + 1, 10**5000, -(10**5000)),
]
fds = st.integers(1, MAX_INTEGER).map(lambda n: f"fd:{n}") | st.from_regex(
    r"\Aref:[A-Za-z0-9_.-]{1,64}\Z", alphabet=st.characters(max_codepoint=127)
)


# --- ids


@given(n=st.integers(1, MAX_INTEGER))
def test_every_form_of_a_number_means_the_same_descriptor(n: int) -> None:
    assert {fd_id(form) for form in (n, str(n), f"fd:{n}", f"fd-{n}")} == {f"fd:{n}"}


@given(fd=fds)
def test_the_displayed_form_of_an_id_is_accepted(fd: str) -> None:
    assert fd_id(fd) == str(selector(fd)) == fd
    assert selector(fd) == Selector(fd)


@pytest.mark.parametrize("name", ["a", "plan", "Plan-2.b_c", "." * 64, "a" * 64, "0"])
def test_a_reference_is_kept_as_it_is_written(name: str) -> None:
    assert fd_id(f"ref:{name}") == f"ref:{name}"


@pytest.mark.parametrize("value", ["fd:01", "fd:1#L01", "fd:1#P1-02", "fd:1#C00", "ref:plan#L010-20"])
def test_no_number_of_an_id_or_a_part_has_leading_zeros(value: str) -> None:
    with pytest.raises(InvalidArgument, match="write fd:3"):
        selector(value)


@pytest.mark.parametrize("value", HOSTILE_IDS, ids=lambda value: ascii(value)[:30])
def test_other_text_is_not_a_descriptor(value: str) -> None:
    for read in (fd_id, selector, parse_request):
        with pytest.raises(InvalidArgument) as caught:
            read(value)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -1, 1.0, math.nan, b"fd:1", ["fd:1"], {}, 10**5000],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_not_ids_are_refused_and_never_formatted(value: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        fd_id(value)
    assert len(str(caught.value)) < 300


@given(value=st.text(max_size=12))
def test_an_accepted_id_is_always_safe_in_a_key(value: str) -> None:
    try:
        found = fd_id(value)
    except InvalidArgument:
        return

    assert found.isascii()
    assert not set(found) & set("{}#/ \n\0")


# --- selectors


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ("fd:3#P2", Part("page", 2, 1)),
        ("fd:3#P2-4", Part("page", 2, 3)),
        ("fd:3#L120-180", Part("line", 120, 61)),
        ("fd:3#L7", Part("line", 7, 1)),
        ("fd:3#C100-299", Part("char", 100, 200)),
        ("fd-3#C1", Part("char", 1, 1)),
        ("3#P1-1", Part("page", 1, 1)),
        ("fd:3#L7-", Part("line", 7, MAX_INTEGER - 6)),
    ],
)
def test_a_selector_names_a_part(written: str, part: Part) -> None:
    assert selector(written) == selector(str(selector(written))) == Selector("fd:3", part)


@given(start=st.integers(1, 10**6), more=st.integers(0, 10**6), unit=st.sampled_from("PLC"))
def test_a_selector_is_inclusive_at_both_ends(start: int, more: int, unit: str) -> None:
    part = selector(f"fd:1#{unit}{start}-{start + more}").part

    assert isinstance(part, Part)
    assert (part.start, part.last, part.count) == (start, start + more, more + 1)


@pytest.mark.parametrize(
    "written",
    [
        *("", "P", "L-", "C1--", "L3- ", "-3", "P-3", "L3-2", "L0", "P0-1", "l1", "X1", "1", "1-2", "P1 "),
        *(" P1", "P1\n"),
        *("P1-2-3", "P1#L1", "P+1", "P1.0", "P\uff11", "L\u0661-\u0662", "P1,2", "L1:2", "P" + "9" * 17),
        *("C9007199254740993", "P1-9007199254740993", "L" + "1" * 5000, "P1}{x"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_any_other_part_is_refused(written: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        selector(f"fd:3#{written}")
    assert len(str(caught.value)) < 300


# --- numbers and separate arguments


@pytest.mark.parametrize("value", [1, 2, MAX_INTEGER])
def test_whole_numbers_from_1_to_2_to_the_53_are_accepted(value: int) -> None:
    assert number("start", value) == value


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("argument", ["start", "count"])
def test_no_other_value_is_a_number(argument: str, value: object) -> None:
    if value is None:
        return  # nothing said

    with pytest.raises(InvalidArgument) as caught:
        parse_request("fd:1", **{argument: value})

    assert caught.value.argument == argument
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "mode", ["", "pages", "Page", "LINE", "byte", 1, True, ["page"], "page\n", "x" * 10**6]
)
@pytest.mark.parametrize("whole", [False, True])
def test_an_unknown_mode_is_refused_with_the_known_ones(mode: object, whole: bool) -> None:
    with pytest.raises(InvalidArgument, match="page, line or char") as caught:
        parse_request("fd:1", mode, whole=whole)
    assert len(str(caught.value)) < 300


def test_omitted_arguments_default_to_one_unit_from_the_start() -> None:
    assert parse_request("fd:1", default=FIRST_PAGE).part == Part("page", 1, 1)
    assert parse_request("fd:1", start=2).part == Part("page", 2, 1)
    assert parse_request("fd:1", count=2).part == Part("page", 1, 2)
    assert parse_request("fd:1", mode="line").part == Part("line", 1, 1)
    assert parse_request("fd:1").part is None
    assert parse_request("fd:1", whole=True, default=FIRST_PAGE).part is None


@pytest.mark.parametrize("beside", [{"start": 1}, {"mode": "line", "count": 2}])
def test_everything_and_a_part_cannot_be_asked_for_together(beside: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="read_all reads everything"):
        parse_request("fd:1", whole=True, **beside)


@pytest.mark.parametrize(
    "beside", [{"mode": "page"}, {"start": 1}, {"count": 1}, {"whole": True}, {"mode": "line", "start": 1}]
)
def test_a_selector_and_separate_arguments_cannot_be_combined(beside: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="says which part already"):
        parse_request("fd:1#L1", **beside)


# --- clamping


@given(start=st.integers(1, 50), count=st.integers(1, 60), total=st.integers(1, 50))
def test_a_count_is_clamped_and_a_start_is_not(start: int, count: int, total: int) -> None:
    for mode in ("page", "line", "char"):
        part = Part(mode, start, count)
        if start > total:
            with pytest.raises(FDStoreError) as caught:
                clamp("fd:1", part, total)
            assert caught.value.type == ("invalid_page" if mode == "page" else "invalid_range")
            assert f"1-{total}" in str(caught.value) or total == 1
        else:
            kept = clamp("fd:1", part, total)
            assert (kept.mode, kept.start) == (mode, start)
            assert kept.last == min(start + count - 1, total)
            assert kept.count >= 1


def test_only_the_start_of_nothing_can_be_read() -> None:
    assert clamp("fd:1", Part("line", 1, 5), 0).count == clamp("fd:1", Part("char", 1, 5), 0).count == 0
    with pytest.raises(PositionOutOfRange, match="it is empty"):
        clamp("fd:1", Part("line", 2, 1), 0)
    with pytest.raises(PageOutOfRange, match="only page 1"):
        clamp("fd:1", Part("page", 2, 1), 1)


def test_the_largest_numbers_do_not_overflow() -> None:
    assert clamp("fd:1", Part("char", 1, MAX_INTEGER), 3).count == 3
    with pytest.raises(PositionOutOfRange):
        clamp("fd:1", Part("char", MAX_INTEGER, MAX_INTEGER), 3)


@pytest.mark.parametrize("values", ["fd:1", b"fd:1", 0, None, True], ids=repr)
def test_what_is_no_list_of_ids_is_refused(values: Any) -> None:
    with pytest.raises(InvalidArgument, match=r'^share: a list of ids is needed, as \["fd:1"\]'):
        fd_ids(values)
