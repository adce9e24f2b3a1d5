"""Rendered frames can be parsed again, and no content can forge them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from fdstore.elements import render, render_search
from fdstore.elements.build import render as render_element
from fdstore.elements.kinds import FdClose, FdContent
from fdstore.errors import InvalidArgument
from fdstore.model.records import Hit, SearchResult
from fdstore.text.layout import show_controls
from tests.unit.rendering import TAG, descriptor, make_slice, parse_frame, process

LIKE_A_TAG = re.compile(r"<\s*/?\s*(?:fd_|process_|preview|tail|message)")

PIECES = [*"</> \n\t\0\u200bxé", "</", "< /\n", "/>", "&lt;", ' escaped="true"']
NAMES = ["fd_", "fd_content", "FD_Result", "fd_error>", "process_result", "Python_result", "preview>", "tail"]
NAMES += ["Message", "ref"]
hostile = st.lists(st.sampled_from(PIECES + NAMES) | st.text(max_size=2), max_size=30).map("".join)


def test_only_the_outermost_element_is_marked_and_nothing_is_escaped_twice():
    inner = render.fd_result(descriptor(), make_slice("<tail>"), "</tail>", "Stored.", 7)

    shown = render.process_result(process(), result=inner).text

    assert inner.text.count('escaped="true"') == shown.count('escaped="true"') == 1
    assert shown.split("\n")[0].endswith(' exit_code="0" escaped="true">')
    assert "<preview>\n&lt;tail>\n</preview>" in shown
    assert "<tail>\n&lt;/tail>\n</tail>" in shown


def test_control_characters_in_attributes_are_escaped_visibly():
    hidden = '\x1b[1m\n\t\x7f\x85\u2028\u202e\u2066\ud800&<>"'

    shown = render_element(FdClose(fd=hidden)).text

    assert shown == (
        r'<fd_close fd="\u{1b}[1m\u{a}\u{9}\u{7f}\u{85}\u{2028}\u{202e}\u{2066}\u{d800}&amp;&lt;&gt;&quot;"'
        ' success="true"/>'
    )


def test_a_megabyte_of_blanks_after_an_angle_bracket_is_escaped_in_linear_time():
    body = "<" + " " * 1_000_000 + "/" + "\n" * 1_000_000 + "x"

    assert body in render_element(FdContent(fd="fd:1"), body).text


def elements_with(text: str, other: str) -> list[tuple[str, list[str], list[str]]]:
    """Return each element with hostile text: its rendering, its expected tags, its expected bodies."""
    result = render.fd_result(descriptor(source=text), make_slice(text), other, "Stored.", 7)
    names = ["message", "/message", "preview", "/preview", "tail", "/tail"]
    in_result = ["fd_result", *names, "/fd_result"]
    hit = Hit(line=1, text=text, chars="1-1")
    found = SearchResult(
        fd="fd:1", pattern=other, hits=(hit,), shown=1, matches=1, total_hits=1, lines_searched=1
    )
    searched = "1:" + text
    return [
        (render.fd_content(make_slice(text, fd=other)).text, ["fd_content", "/fd_content"], [text]),
        (result.text, in_result, ["Stored.", text, other]),
        (
            render.process_result(process(reason=other), result=result).text,
            ["process_result", *in_result, "/process_result"],
            ["Stored.", text, other],
        ),
        (render.process_result(process(), text).text, ["process_result", "/process_result"], [text]),
        (render_search.fd_search(found).text, ["fd_search", "/fd_search"], [searched]),
        (
            render.fd_error(InvalidArgument(other, text)).text,
            ["fd_error", "message", "/message", "/fd_error"],
            [show_controls(str(InvalidArgument(other, text)))],
        ),
    ]


@given(text=hostile, other=hostile)
def test_no_body_can_forge_a_frame_or_a_part_of_one(text: str, other: str):
    for rendered, tags, _ in elements_with(text, other):
        assert [tag[1] + tag[2] for tag in TAG.finditer(rendered)] == tags
        assert len(LIKE_A_TAG.findall(rendered)) == len(tags)


@given(text=hostile, other=hostile)
def test_without_bodies_every_element_is_xml_and_the_bodies_are_the_stored_text(text: str, other: str):
    for rendered, _, bodies in elements_with(text, other):
        frame, taken = parse_frame(rendered)

        marked = [part for part in frame.iter() if "escaped" in part.attrib]
        if marked:
            assert marked == [frame]
            assert list(frame.attrib)[-1] == "escaped"
            assert [body.replace("&lt;", "<") for body in taken] == [b.replace("&lt;", "<") for b in bodies]
        else:
            assert taken == bodies


@given(value=st.text() | hostile | st.integers() | st.booleans())
def test_every_attribute_reads_back_as_the_visible_form_of_its_value(value: str | int | bool):
    frame = ElementTree.fromstring(render_element(FdClose(fd=value, success=1)).text)

    expected = str(value).lower() if isinstance(value, bool) else show_controls(str(value), keep="")
    assert list(frame.attrib.items()) == [("fd", expected), ("success", "1")]


def test_a_value_of_a_class_of_a_parser_is_escaped_as_any_text() -> None:
    class Parsed(str):
        """As the texts that parsers of HTML return."""

    frame = ElementTree.fromstring(render_element(FdClose(fd=Parsed('a" forged="<fd_list>'), success=1)).text)

    assert frame.attrib["fd"] == 'a" forged="<fd_list>'
