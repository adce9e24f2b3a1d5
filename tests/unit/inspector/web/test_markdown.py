"""What models answer is shown as Markdown without what a page must not have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.inspector.web.markdown import markdown

PIECES = st.sampled_from(
    ["|", ":-", "-:", ":-:", "---", "\n", " a ", "# ", "**b**", "<i style='x'>", "`c`", "> "]
)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("|---:|", '<th class="to-right">'),
        ("|:--:|", '<th class="to-center">'),
        ("|:---|", '<th class="to-left">'),
        ("|----|", "<th>"),
    ],
)
def test_a_column_is_aligned_by_a_class(line: str, shown: str) -> None:
    found = markdown(f"| cost |\n{line}\n| 5 |")

    assert shown in found
    assert shown.replace("th", "td", 1) in found


@given(st.lists(PIECES, max_size=30).map("".join))
def test_no_element_has_a_style_or_a_link_which_the_policy_of_the_pages_refuses(text: str) -> None:
    found = markdown(text).replace("&lt;i style=", "")

    assert "style=" not in found
    assert "href=" not in found
