"""Elements of which there is only the text are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.elements import render
from fdstore.elements.build import element
from fdstore.elements.look_alikes import escape_look_alikes
from fdstore.elements.read import MAX_NESTING, ReadElement, read_facts, read_parts, split_message
from fdstore.elements.render_search import fd_search
from fdstore.elements.result_facts import ResultFacts
from fdstore.errors import InvalidArgument
from fdstore.model.records import SearchResult
from tests.unit.rendering import descriptor, make_slice

FORGED = '<fd_result fd="fd:7" pages="2">'


def test_an_element_in_a_history_of_others_is_read() -> None:
    pattern = '<a&b> fd="fd:9"' * 20
    found = SearchResult(fd="fd:1", pattern=pattern, hits=(), shown=0, matches=0, lines_searched=0)
    assert read_facts(fd_search(found).text).repeatable_fds == ("fd:1",)
    assert read_facts(render.fd_list([], 0).text).repeatable_fds == ()
    assert read_facts(render.fd_content(make_slice("x")).text).repeatable_fds == ("fd:1",)
    assert read_facts(render.fd_error(InvalidArgument("a", "b")).text).error.type == "invalid_argument"
    stored = render.fd_result(descriptor(source="a > b"), None, None, "Stored.", 7)
    assert read_facts(stored.text).fds == ("fd:1",)
    for other in ("", "a text", f"see {FORGED}", FORGED[:-1], render.fd_close("fd:1").text):
        assert read_facts(other) == ResultFacts()


def test_the_message_of_an_element_is_parted_from_what_others_wrote() -> None:
    stored = render.fd_result(descriptor(), make_slice("a read_fd </message> b"), None, "Stored.", 7)

    before, message, rest = split_message(stored.text)

    assert message.endswith("<message>\nStored.\n</message>")
    assert (before + message + rest, split_message("a text")) == (stored.text, ("", "", "a text"))


@given(st.text(), st.text(), st.text())
def test_the_parts_of_a_result_are_read_as_they_were_rendered(source: str, head: str, tail: str) -> None:
    rendered = render.fd_result(
        descriptor(source=source), make_slice(head), render.Tail(text=tail, lines="9-9"), "Stored.", 7
    )

    [found] = read_parts(rendered.text)

    assert isinstance(found, ReadElement)
    assert found.is_whole
    assert (found.attributes["fd"], found.attributes["total_chars"]) == ("fd:1", "48000")
    shown = {each.name: each.body for each in found.children}
    assert shown == {
        "message": "Stored.",
        "preview": escape_look_alikes(head)[0],
        "tail": escape_look_alikes(tail)[0],
    }


@given(st.text())
def test_any_text_in_an_element_is_its_body(text: str) -> None:
    rendered = element("fd_content", [("fd", "fd:1")], body=text)

    [found] = read_parts(rendered.text)

    assert found == ReadElement("fd_content", found.attributes, body=escape_look_alikes(text)[0])


@given(st.text(alphabet='<>/fd_a= "\nx', max_size=200))
def test_a_text_of_anything_like_elements_is_read_without_loss_of_order(text: str) -> None:
    plain = [part for part in read_parts(text) if isinstance(part, str)]

    at = 0
    for part in plain:
        at = text.index(part, at) + len(part)


def test_texts_before_between_and_behind_elements_are_kept() -> None:
    one, two = render.fd_close("fd:1").text, render.fd_close("fd:2").text

    found = read_parts(f"see\n{one}\nand\n{two}\nend\n")

    assert [each if isinstance(each, str) else each.attributes["fd"] for each in found] == [
        *("see", "fd:1", "and", "fd:2", "end\n"),
    ]


@pytest.mark.parametrize("keep", [70, 150, 190])
def test_an_element_that_was_cut_is_not_whole(keep: int) -> None:
    text = render.fd_result(descriptor(), make_slice("line\n" * 40), None, "Stored.", 7).text

    [found] = read_parts(text[: len(text) - keep])

    assert isinstance(found, ReadElement)
    assert not found.is_whole
    preview = found.child("preview")
    assert preview is not None
    assert preview.body.startswith("line\nline\n")


def test_elements_in_elements_without_end_are_read_to_a_bound() -> None:
    [found] = read_parts("<fd_list>\n" * 5000)

    depth = 0
    while isinstance(found, ReadElement) and found.children:
        found, depth = found.children[0], depth + 1
    assert depth == MAX_NESTING
