"""Lines that are drawn in place fit the terminal, whatever they name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.cli.progress import progress_line
from fdstore.cli.tables import width


@given(
    st.text(max_size=120),
    st.integers(0, 10**13),
    st.none() | st.integers(1, 10**13),
    st.floats(0, 1e6),
    st.sampled_from(["", "content"]),
    st.integers(20, 200),
)
def test_a_progress_line_is_never_wider_than_the_terminal(label, done, total, seconds, noun, columns):
    assert width(progress_line(label, done, total, seconds, noun, columns=columns)) <= columns


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_long_label_leaves_the_figures_readable(columns):
    line = progress_line("3 of 12: " + "n" * 48, 5_000_000, 10_000_000, 2.0, columns=columns)

    assert line.startswith("3 of")
    assert line.endswith(" 50%  5.0 MB of 10.0 MB  2.5 MB/s")
