"""Each page of a cold content has an entry of the same width, which tells how many bytes the page has."""

from __future__ import annotations

import pytest

from fdstore.model.records import Descriptor
from fdstore.store.objects.checksums import (
    bytes_of_a_page,
    decode_sum,
    digest_of_page,
    encode_sum,
    more_bytes_of,
)


def descriptor(page_size: int, chars: int) -> Descriptor:
    return Descriptor(
        fd="fd:1",
        state="sealed",
        chars=chars,
        bytes=4 * chars,
        lines=1,
        pages=-(-chars // page_size),
        page_size=page_size,
        source="",
        created_at=0.0,
        producer="t",
    )


@pytest.mark.parametrize("page_size", [1, 85, 86, 4000, 21_845, 21_846, 10**7, 2**53])
@pytest.mark.parametrize("chars", [1, 10**4, 10**9])
def test_the_page_with_most_bytes_has_an_entry(page_size: int, chars: int) -> None:
    d, most = descriptor(page_size, chars), 3 * min(page_size, chars)

    entry = encode_sum(b"page", most, more_bytes_of(d))

    assert len(entry) == bytes_of_a_page(d)
    assert decode_sum(entry) == (digest_of_page(b"page"), most)
