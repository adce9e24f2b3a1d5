"""Large pages are stored as two values, so that the allocator of Redis rounds up by little."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fdstore.store.contents.page_fields import MAX_ROUNDED_UP, MIN_SPLIT, joined, split

CLASSES = sorted(part * step for power in range(10, 20) for step in [1 << power] for part in (4, 5, 6, 7))
"""The sizes that jemalloc allocates, from 4 KiB to 3.5 MiB."""


def rounded_up(value: bytes) -> int:
    needed = len(value) + (6 if len(value) < 1 << 16 else 10)
    return next(size for size in CLASSES if size >= needed) - needed


@given(
    letters=st.lists(st.sampled_from("a\n\u00e9\u6f22\U0001f600"), min_size=1, max_size=30),
    size=st.integers(1, 300_000),
)
def test_the_two_values_of_a_text_are_utf8_and_the_first_fits_an_allocation(
    letters: list[str], size: int
) -> None:
    unit = "".join(letters).encode()
    page = unit * (size // len(unit) + 1)

    head, rest = split(page, is_text=True)

    assert joined([head, rest or None]) == [page]
    head.decode("utf-8")
    rest.decode("utf-8")
    if len(page) > MIN_SPLIT:
        assert rounded_up(head) <= MAX_ROUNDED_UP + (0 if rest == b"" else 3)


@given(size=st.integers(1, 300_000))
def test_the_first_value_of_bytes_fills_its_allocation(size: int) -> None:
    head, rest = split(bytes(size), is_text=False)

    assert joined([head, rest or None]) == [bytes(size)]
    assert rest == b"" or (rounded_up(head) == 0 and size > MIN_SPLIT)
