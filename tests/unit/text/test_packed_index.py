"""The packed index of a text is its index: what is unpacked is what was there, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.text.index import GROUP_PAGES, Group, IndexWriter
from fdstore.text.packed_index import MOST_PACKED, pack_page, unpack_group
from fdstore.text.paging import cut

texts = st.tuples(
    st.lists(st.sampled_from(["\n", "\n\n\n", "a", "ab\n", "a long line " * 9, "漢\n", "\N{GRINNING FACE}"])),
    st.integers(0, 30),
).map(lambda drawn: "".join(drawn[0]) * drawn[1])


@given(text=texts, page_size=st.sampled_from([1, 2, 7, 60, 130, 4000, 2**53]))
@example(text="", page_size=1)
@example(text="a" * 16, page_size=1)
@example(text="\n" * GROUP_PAGES, page_size=1)
@example(text=("a" * 199 + "\n") * 3000, page_size=4000)
def test_an_index_is_the_same_after_packing(text: str, page_size: int) -> None:
    writer, packed, more = IndexWriter(), b"", []
    pages = [page for some in cut(text, page_size) for page in some][:GROUP_PAGES]
    writer.add(pages)
    for data, chars in pages:
        entry = pack_page(data, chars, page_size)
        assert len(entry) <= MOST_PACKED
        packed += entry
        more.append(len(data) - chars)

    found = unpack_group(packed, page_size, more)

    assert {"1": found.decode()} == writer.fields()
    assert Group(1, found).value == found


@given(text=texts.filter(bool), page_size=st.integers(1, 60))
def test_a_group_gives_its_field_again(text: str, page_size: int) -> None:
    writer = IndexWriter()
    for pages in cut(text, page_size):
        writer.add(pages)

    for first, value in writer.fields().items():
        assert Group(int(first), value.encode()).value == value.encode()


@given(packed=st.binary(max_size=300), count=st.integers(1, 20), page_size=st.integers(1, 300))
def test_other_bytes_are_an_index_of_so_many_pages_or_none(packed: bytes, count: int, page_size: int) -> None:
    try:
        value = unpack_group(packed, page_size, [0] * count)
    except ValueError:
        return
    assert Group(1, value).last == count
    assert Group(1, value).end.chars <= count * page_size


@pytest.mark.parametrize("packed", [b"", b"\x02", b"\x02\x00\x02", b"\x02\x80", b"\x02\x02", b"\xff" * 40])
def test_a_damaged_one_is_an_error(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"are no index|number is cut"):
        unpack_group(packed, 1, [0])
