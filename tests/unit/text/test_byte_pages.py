"""Bytes are cut at every `page_size` bytes, however they arrive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fdstore.text.byte_pages import ByteCutter, ByteTotals, cut_bytes


@given(blocks=st.lists(st.binary(max_size=12)), page_size=st.integers(1, 9))
def test_pages_are_slices_of_the_bytes(blocks: list[bytes], page_size: int) -> None:
    whole = b"".join(blocks)
    cutter, totals = ByteCutter(page_size), ByteTotals()

    pages = [page for block in blocks for page in cutter.feed(block)]
    kept = cutter.rest().data
    pages += cutter.finish()
    totals.add(pages)

    assert kept == pages[-1].data
    assert [page.data for page in pages] == [
        whole[start : start + page_size] for start in range(0, max(len(whole), 1), page_size)
    ]
    assert (totals.pages, totals.bytes, totals.chars, totals.lines) == (len(pages), len(whole), 0, 0)
    assert [page for some in cut_bytes(whole, page_size) for page in some] == pages
