"""The page rule and the cutter: the join of all pages is the text, in whatever pieces it arrived."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.text.paging import Cutter, Page, count_lines, cut, encode, page_end, pages_of
from tests.memory import assert_takes_less

FAMILY = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
AWKWARD = [
    *("\n", "\n\n\n", "\r\n", "\r", "\0", "\ufeff", "\u2028", "\x85", "\x0b", "\x1c"),
    *("a", "word ", "long" * 20, "é", "漢字", "\N{GRINNING FACE}", FAMILY),
]
texts = st.lists(st.sampled_from(AWKWARD) | st.text(max_size=4), max_size=30).map("".join)
page_sizes = st.integers(1, 40) | st.just(10**6)


def rule(text: str, size: int) -> list[str]:
    """Apply the page rule of the contract literally and slowly."""
    pages, start = [], 0
    while len(text) - start > size:
        window = text[start : start + size]
        last_newline = max((i for i, character in enumerate(window) if character == "\n"), default=None)
        end = start + size if last_newline is None else start + last_newline + 1
        pages.append(text[start:end])
        start = end
    return [*pages, text[start:]]


def described(page: str) -> Page:
    return Page(page.encode(), len(page))


def blocks_of(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = [0, *sorted(min(end, len(data)) for end in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(ends)]


def fed(cutter: Cutter, blocks: list[bytes]) -> list[Page]:
    return [page for block in blocks for page in cutter.feed(block)] + cutter.finish()


# --- the rule


@given(text=texts, size=page_sizes)
@example(text="", size=1)
@example(text="\n", size=1)
@example(text="abc", size=3)
@example(text="ab\ncd", size=3)
@example(text="\r\n\r\n", size=1)
@example(text=FAMILY, size=2)
def test_the_join_of_all_pages_is_the_text_and_no_page_is_too_long(text: str, size: int) -> None:
    pages = pages_of(text, size)

    assert "".join(pages) == text
    assert all(len(page) <= size for page in pages)


@given(text=texts, size=page_sizes)
def test_pages_match_the_reference_rule(text: str, size: int) -> None:
    assert pages_of(text, size) == rule(text, size)


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", 0), ("a", 1), ("\n", 1), ("a\n", 1), ("a\nb", 2), ("\n\n\n", 3), ("a\r\n", 1), ("a\rb", 1)],
)
def test_a_trailing_lf_opens_no_further_line(text: str, lines: int) -> None:
    assert count_lines(text) == lines


@given(before=texts, text=texts, size=page_sizes)
@example(before="xx\n", text="ab\ncd", size=4)
def test_the_end_of_a_page_depends_only_on_the_text_after_its_start(
    before: str, text: str, size: int
) -> None:
    assert page_end(before + text, len(before), size) == len(before) + len(rule(text, size)[0])


# --- the cutter


@given(text=texts, size=page_sizes, cuts=st.lists(st.integers(0, 400), max_size=12))
@example(text="\N{GRINNING FACE}" * 3, size=2, cuts=[1, 2, 3, 5, 6, 7])
@example(text="a" * 50 + "漢\n" + "b" * 50, size=7, cuts=[50, 51, 52])
@example(text="\ufeffa\n", size=1, cuts=[1, 2])
def test_a_text_may_arrive_in_any_blocks_even_split_inside_a_character(
    text: str, size: int, cuts: list[int]
) -> None:
    blocks = blocks_of(text.encode(), cuts)

    pages = fed(Cutter(size), blocks)

    assert pages == [described(page) for page in rule(text, size)]


@given(text=texts, size=page_sizes, cuts=st.lists(st.integers(0, 100), max_size=6))
def test_characters_may_arrive_in_any_pieces(text: str, size: int, cuts: list[int]) -> None:
    ends = [0, *sorted(min(end, len(text)) for end in cuts), len(text)]
    cutter = Cutter(size)

    pages = [page for a, b in pairwise(ends) for page in cutter.feed_text(text[a:b])] + cutter.finish()

    assert pages == [described(page) for page in rule(text, size)]


@given(text=texts, size=page_sizes)
def test_a_text_in_memory_gives_the_same_pages(text: str, size: int) -> None:
    assert [page for run in cut(text, size) for page in run] == [described(p) for p in rule(text, size)]


@pytest.mark.parametrize("line", ["x" * 79 + "\n", "漢" * 30 + "\n", "é", "\n"])
def test_a_text_of_several_blocks_gives_the_same_pages(line: str) -> None:
    text = line * (2_300_000 // len(line)) + "the rest"

    pages = [page for run in cut(text, 4000) for page in run]

    assert pages == [described(page) for page in pages_of(text, 4000)]


@given(data=st.binary(max_size=60), size=st.integers(1, 10), cuts=st.lists(st.integers(0, 60), max_size=8))
@example(data=b"ab\xff\xfe\ncd", size=3, cuts=[3])
@example(data=b"\xf0\x9f\x98", size=3, cuts=[1, 2])
def test_bytes_that_are_not_utf8_are_refused_or_kept_visibly(data: bytes, size: int, cuts: list[int]) -> None:
    try:
        strict = data.decode("utf-8")
    except UnicodeDecodeError as error:
        with pytest.raises(InvalidArgument, match=rf"byte {error.start + 1} is not UTF-8"):
            fed(Cutter(size), blocks_of(data, cuts))
    else:
        assert fed(Cutter(size), blocks_of(data, cuts)) == [described(p) for p in rule(strict, size)]

    lenient = data.decode("utf-8", "backslashreplace")
    pages = fed(Cutter(size, "backslashreplace"), blocks_of(data, cuts))
    assert pages == [described(page) for page in rule(lenient, size)]


@given(
    before=st.text(max_size=5), code=st.integers(0xD800, 0xDFFF), after=st.text(max_size=5), size=page_sizes
)
def test_a_lone_surrogate_is_refused_and_named(before: str, code: int, after: str, size: int) -> None:
    text = before + chr(code) + after

    with pytest.raises(InvalidArgument, match=f"U\\+{code:04X}"):
        list(cut(text, size))
    with pytest.raises(InvalidArgument, match=f"U\\+{code:04X}"):
        encode(text)


def test_two_surrogates_in_two_pieces_do_not_become_a_character() -> None:
    cutter = Cutter(10)

    cutter.feed_text("\ud83d")
    cutter.feed_text("\ude00")

    with pytest.raises(InvalidArgument, match=r"U\+D83D"):
        cutter.finish()


def test_a_streamed_text_is_not_kept_in_memory() -> None:
    block = b"x" * 99 + b"\n"
    block *= 1000

    def feed(_: int) -> None:
        cutter = Cutter(4000)
        for _ in range(100):
            cutter.feed(block)

    assert_takes_less(1_000_000, feed)  # 10 MB went through
