"""Lines are digested alike however a text is cut into pieces."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.text import line_digests
from fdstore.text.line_digests import LineDigests

TEXTS = st.text(st.sampled_from("ab\n\r\u2028é😀"), max_size=60)


def digested(*pieces: str) -> LineDigests:
    lines = LineDigests()
    for piece in pieces:
        lines.feed(piece)
    lines.finish()
    return lines


def lines_of(text: str) -> list[str]:
    return list(io.StringIO(text, newline="\n"))


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of more than eight characters are digested in chunks."""
    monkeypatch.setattr(line_digests, "CHUNK_CHARS", 8)


@given(TEXTS, st.lists(st.integers(0, 60), max_size=5))
def test_the_pieces_make_no_difference(text: str, cuts: list[int]) -> None:
    whole = digested(text)
    ends = [0, *sorted(cuts), len(text)]

    cut = digested(*(text[start:end] for start, end in pairwise(ends)))

    assert (cut.digests, cut.starts) == (whole.digests, whole.starts)


@given(TEXTS, TEXTS)
def test_lines_end_at_lf_alone_and_are_equal_if_their_digests_are(text: str, other: str) -> None:
    ours, theirs = digested(text), digested(other)
    lines, others = lines_of(text), lines_of(other)

    assert [text[a:b] for a, b in pairwise(ours.starts)] == lines
    equal = [[line == each for each in others] for line in lines]
    assert [[digest == each for each in theirs.digests] for digest in ours.digests] == equal
