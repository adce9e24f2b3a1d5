"""The sparse line index finds every line and character, and agrees with the text."""

from __future__ import annotations

import random
import re

from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.text.index import GROUP_PAGES, ROW_PAGES, Group, IndexWriter, TextPosition, group_of
from fdstore.text.paging import count_lines, cut, pages_of

texts = st.lists(
    st.sampled_from(["\n", "\n\n\n", "a", "ab\n", "long line " * 5, "漢\n", "\r\n", "\N{GRINNING FACE}"]),
    max_size=60,
).map("".join)
long_texts = st.tuples(texts, st.integers(1, 40)).map(lambda drawn: drawn[0] * drawn[1])


def index_of(text: str, page_size: int) -> tuple[IndexWriter, dict[int, Group]]:
    writer = IndexWriter()
    fields: dict[str, str] = {}
    for pages in cut(text, page_size):
        writer.add(pages)
        fields.update(writer.full_groups())
    fields.update(writer.fields())
    return writer, {int(name): Group(int(name), value.encode()) for name, value in fields.items()}


def places_of(text: str, page_size: int) -> list[TextPosition]:
    """Return the start of every page, computed from the text; the last item is the end of the text."""
    places, position = [], 0
    for number, page in enumerate([*pages_of(text, page_size), ""], start=1):
        before = text[:position]
        mid_line = bool(before) and not before.endswith("\n")
        places.append(TextPosition(number, before.count("\n"), len(before), mid_line))
        position += len(page)
    return places


@given(text=texts | long_texts, page_size=st.integers(1, 7))
@example(text="", page_size=1)
@example(text="a" * GROUP_PAGES, page_size=1)
@example(text="a" * (GROUP_PAGES + 1), page_size=1)
@example(text="\n" * (2 * GROUP_PAGES + 1), page_size=1)
def test_totals_are_those_of_the_text(text: str, page_size: int) -> None:
    writer, _ = index_of(text, page_size)

    assert writer.chars == len(text)
    assert writer.bytes == len(text.encode())
    assert writer.newlines == text.count("\n")
    assert writer.lines == count_lines(text)
    assert writer.pages == len(pages_of(text, page_size))


@given(text=texts | long_texts, page_size=st.integers(1, 7), order=st.randoms(use_true_random=False))
@example(text="", page_size=1, order=random.Random(1))
@example(text="a" * (GROUP_PAGES + 1), page_size=1, order=random.Random(1))
@example(text="ab\n" * GROUP_PAGES * 2, page_size=3, order=random.Random(1))
def test_every_page_knows_what_comes_before_and_after_it_whenever_it_is_asked_for(
    text: str, page_size: int, order: random.Random
) -> None:
    _, groups = index_of(text, page_size)
    asked = [*enumerate(pages_of(text, page_size))] * 2
    order.shuffle(asked)

    places = places_of(text, page_size)
    for i, page in asked:
        place, group = places[i], groups[group_of(i + 1)]
        assert group.before(place.page) == place
        if text:
            assert group.at(place.page) == (place.newlines, place.chars, place.mid_line, count_lines(page))
            assert group.after(place.page) == places[i + 1]


@given(text=texts | long_texts, page_size=st.integers(1, 7))
def test_a_line_and_a_character_are_found_by_bisection(text: str, page_size: int) -> None:
    _, groups = index_of(text, page_size)
    newlines = chars = 0

    for number, page in enumerate(pages_of(text, page_size), start=1):
        group = groups[group_of(number)]
        for character in page:
            chars += 1
            assert group.page_of_char(chars) == number
            if character == "\n":
                newlines += 1
                assert group.page_of_newline(newlines) == number


def test_positions_after_the_end_are_on_the_last_page() -> None:
    _, groups = index_of("ab\ncd\nef", 3)

    assert groups[1].page_of_newline(99) == groups[1].page_of_char(99) == groups[1].last == 3


def test_a_full_group_is_returned_once_and_never_changes() -> None:
    writer = IndexWriter()
    handed: list[str] = []

    for pages in cut("a\n" * 1000, 2):
        for page in pages:
            writer.add([page])
            handed += writer.full_groups()
    rest = writer.fields()

    assert handed == ["1", "257", "513"]
    assert list(rest) == ["769"]


@given(text=texts | long_texts, page_size=st.integers(1, 3))
def test_a_group_knows_the_bytes_before_it_and_of_its_rows(text: str, page_size: int) -> None:
    _, groups = index_of(text, page_size)

    sizes = [len(page.encode()) for page in pages_of(text, page_size)]
    for first, group in groups.items():
        pages = sizes[first - 1 : first - 1 + GROUP_PAGES]
        rows = [sum(pages[start : start + ROW_PAGES]) for start in range(0, len(pages), ROW_PAGES)]
        assert group.bytes == [sum(sizes[: first - 1]), *rows[:-1]]


@given(text=long_texts, page_size=st.integers(1, 7))
def test_a_field_is_ascii_that_people_can_read(text: str, page_size: int) -> None:
    writer = IndexWriter()
    for pages in cut(text, page_size):
        writer.add(pages)

    for name, value in writer.fields().items():
        rows = value.split("\n")
        if name != "1" or len(rows) > 1:
            assert re.fullmatch(r"b\d+( \d+){0,15}", rows.pop())
        for row in rows:
            assert re.fullmatch(r"\d+ \d+~?;\d+,\d+~?( \d+,\d+~?){0,15}", row)


def test_the_index_of_ordinary_text_is_a_small_part_of_it() -> None:
    text = "a line of a usual log, about as long as this one is\n" * 40_000
    writer = IndexWriter()

    for pages in cut(text, 4000):
        writer.add(pages)

    assert sum(map(len, writer.fields().values())) < 0.003 * len(text)
