"""The facts that scripts read of the results that a model is shown."""

from __future__ import annotations

import pytest
from msgspec import structs

from fdstore.elements.render import fd_content
from fdstore.model.records import Slice
from fdstore.testing import element, elements
from tests.unit.rendering import PAGE


def page(fd: str, text: str) -> Slice:
    return structs.replace(PAGE, fd=fd, text=text)


def test_the_body_of_a_page_is_its_text():
    found = element(fd_content(page("fd:1", "one\n\ntwo\n")).text, "fd_content")

    assert found["fd"] == "fd:1"
    assert found.body == "one\n\ntwo\n"


def test_elements_are_found_in_the_order_of_a_text_with_several_results():
    shown = "\n".join(["Two pages:", fd_content(page("fd:1", "a")).text, fd_content(page("fd:2", "")).text])

    assert [(each["fd"], each.body) for each in elements(shown, "fd_content")] == [
        ("fd:1", "a"),
        ("fd:2", ""),
    ]


def test_an_attribute_is_read_without_its_escapes():
    assert (
        element('<fd_search pattern="&lt;a&gt; &amp; &quot;b&quot;"/>', "fd_search")["pattern"] == '<a> & "b"'
    )


def test_an_element_that_was_not_shown_is_an_error_with_what_was():
    with pytest.raises(ValueError, match="no fd_content: <fd_error"):
        element('<fd_error type="not_found">\n</fd_error>', "fd_content")
