"""The packed index of a text is its index: what is unpacked is what was there, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.text.index import GROUP_PAGES, Group, IndexWriter
from fdstore.text.packed_index import (
    MOST_PACKED,
    is_packed,
    pack_field,
    pack_page,
    unpack_field,
    unpack_group,
)
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


@given(text=texts.filter(bool), page_size=st.integers(1, 60))
@example(text="a" * 17, page_size=1)
@example(text="ab\n" * (2 * GROUP_PAGES + 1), page_size=3)
def test_every_field_is_the_same_after_packing(text: str, page_size: int) -> None:
    writer = IndexWriter()
    for pages in cut(text, page_size):
        writer.add(pages)

    for value in map(str.encode, writer.fields().values()):
        packed = pack_field(value, page_size)
        assert is_packed(packed)
        assert not is_packed(value)
        assert unpack_field(packed, page_size) == value
        # what scripts read of a field is there: where it begins, and the sizes of its rows
        assert packed.startswith(value.partition(b";")[0] + b"=")
        found, _, sizes = value.rpartition(b"\nb")
        assert packed.endswith(b"\nb" + (sizes if found else b"0"))


@given(packed=st.binary(max_size=300), page_size=st.integers(1, 300))
@example(packed=b"0 0=\n\nb\nb0", page_size=10)
def test_other_bytes_are_no_packed_field_or_a_whole_one(packed: bytes, page_size: int) -> None:
    for field in (packed, b"0 0=" + packed, b"7 90~=" + packed + b"\nb100"):
        try:
            value = unpack_field(field, page_size)
        except ValueError:
            continue
        assert not is_packed(value)
        assert unpack_field(pack_field(value, page_size), page_size) == value


@pytest.mark.parametrize(
    "field",
    [b"", b"=", b"0 0=", b"0 0=\x02\x01", b"0 0=\x02\nb0", b"0 0=\x02\x80\nb0", b"0 0=\x02\x02\nb0 1"],
)
def test_a_damaged_field_is_an_error(field: bytes) -> None:
    with pytest.raises(ValueError):
        unpack_field(field, 60)


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
