"""Rendered frames are exact, can be parsed again, and cannot be forged by any content."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fdstore import render
from fdstore.errors import InvalidArgument, NotFound
from fdstore.records import ContextLine, Descriptor, Export, Hit, ProcessRecord, SearchResult, Slice
from fdstore.render import Rendered, Tail
from fdstore.text.layout import show_controls

TAG = re.compile(r"<(/?)(fd_\w+|process_result|preview|tail|message)\b[^>]*>")
LIKE_A_TAG = re.compile(r"<\s*/?\s*(?:fd_|process_|preview|tail|message)")

PIECES = [
    "<",
    "</",
    "< /\n",
    "/",
    ">",
    "/>",
    " ",
    "\n",
    "\t",
    "\0",
    "\u200b",
    "&lt;",
    "x",
    "é",
    ' escaped="true"',
]
NAMES = [
    "fd_",
    "fd_content",
    "FD_Result",
    "fd_error>",
    "process_result",
    "preview>",
    "tail",
    "Message",
    "ref",
]
hostile = st.lists(st.sampled_from(PIECES + NAMES) | st.text(max_size=2), max_size=30).map("".join)


DESCRIPTOR = Descriptor(
    fd="fd:1",
    state="sealed",
    chars=48000,
    bytes=48000,
    lines=500,
    pages=12,
    page_size=4000,
    source="tool_result",
    created_at=0.0,
    producer="triage",
)
PAGE = Slice(
    text="",
    fd="fd:1",
    mode="page",
    page=2,
    start=2,
    count=1,
    pages=3,
    lines="41-80",
    total_lines=100,
    chars="4001-8000",
    total_chars=9000,
    continued=False,
    truncated=True,
    state="sealed",
    eof=False,
)
PROCESS = ProcessRecord(id="triage.1", state="exited", program="expert", exit_code=0)


def descriptor(fd: str = "fd:1", **changes: object) -> Descriptor:
    return replace(DESCRIPTOR, fd=fd, **changes)


def make_slice(text: str, **changes: object) -> Slice:
    return replace(PAGE, text=text, **changes)


def process(**changes: object) -> ProcessRecord:
    return replace(PROCESS, **changes)


def context_lines(line: int, text: str, left_out: int = 0) -> tuple[ContextLine, ...]:
    return (ContextLine(line=line, text=text, left_out=left_out),)


def parse_frame(rendered: str) -> tuple[ElementTree.Element, list[str]]:
    """Return the frame as XML and its bodies, parsed as described to the model.

    A body is the text between the LF after an opening tag and the LF before its closing tag, without another
    frame tag in between. Each body is replaced by its number, and the remainder is parsed.
    """
    tags = list(TAG.finditer(rendered))
    frame, bodies, done = "", [], 0
    for tag, following in pairwise(tags):
        if not tag[1] and following[1]:
            assert tag[2] == following[2]
            between = rendered[tag.end() : following.start()]
            assert len(between) >= 2
            assert between[0] == between[-1] == "\n"
            frame += rendered[done : tag.end()] + str(len(bodies))
            bodies.append(between[1:-1])
            done = following.start()
    return ElementTree.fromstring(frame + rendered[done:]), bodies


# One example of each element


def test_a_page_is_rendered_raw_between_two_line_breaks():
    shown = render.fd_content(make_slice("if a < b && c > d:\n\tprint('&amp;')\n"))

    assert shown == (
        '<fd_content fd="fd:1" page="2" pages="3" continued="false" truncated="true" lines="41-80"'
        ' total_lines="100" chars="4001-8000">\n'
        "if a < b && c > d:\n\tprint('&amp;')\n\n"
        "</fd_content>"
    )


def test_a_complete_content_has_page_all():
    shown = render.fd_content(make_slice("", page="all"))

    assert shown.startswith('<fd_content fd="fd:1" page="all" pages="3" ')
    assert shown.endswith(">\n\n</fd_content>")


def test_ranges_of_lines_characters_or_pages_state_the_range_in_place_of_the_page():
    shown = render.fd_content(make_slice("x", page=None, mode="line", start=41, count=40))

    assert shown == (
        '<fd_content fd="fd:1" pages="3" continued="false" truncated="true" lines="41-80" total_lines="100"'
        ' chars="4001-8000" mode="line" start="41" count="40">\nx\n</fd_content>'
    )


def test_a_stream_has_its_state_and_when_ended_the_exit_codes_of_its_chain():
    growing = render.fd_content(make_slice("x", state="open"))
    ended = render.fd_content(make_slice("x", eof=True, exit_code=0, chain="0,1 0"))

    assert ' chars="4001-8000" state="open" eof="false">' in growing
    assert ' chars="4001-8000" state="sealed" eof="true" exit_code="0" chain="0,1 0">' in ended
    assert " state=" not in render.fd_content(make_slice("x"))


def test_a_broken_stream_gives_its_reason_in_every_part_and_in_the_list():
    part = render.fd_content(make_slice("x", state="broken", reason='signal 9 "at once"'))
    listed = render.fd_list([descriptor(state="broken", reason="writer_lost"), descriptor("fd:2")], 2)

    assert ' state="broken" reason="signal 9 &quot;at once&quot;" eof="false">' in part
    assert "fd:1 broken chars=" in listed
    assert ' producer="triage" reason="writer_lost"\n' in listed
    assert listed.count("reason") == 1


def test_a_stored_text_is_rendered_with_its_first_page_and_its_tail():
    d = descriptor(source="web search")
    first = make_slice("first page\n", page=1, lines="1-40")

    shown = render.fd_result(d, first, Tail(text="the end", lines="499-500"), "Stored.")

    assert shown == (
        '<fd_result fd="fd:1" pages="12" truncated="true" lines="1-40" total_lines="500" total_chars="48000"'
        ' source="web search">\n'
        "<message>\nStored.\n</message>\n"
        "<preview>\nfirst page\n\n</preview>\n"
        '<tail lines="499-500">\nthe end\n</tail>\n'
        "</fd_result>"
    )


def test_a_text_of_one_page_has_no_tail_and_an_open_one_is_marked_open():
    shown = render.fd_result(
        descriptor(pages=1, state="open"), make_slice("x"), Tail(text="x", lines="1-1"), "Growing."
    )

    assert "<tail" not in shown
    assert ' source="tool_result" state="open">' in shown


def test_the_message_names_only_enabled_tools():
    d = descriptor("fd:3")

    assert render.stored_message(d) == "The text is stored as fd:3 (12 pages of at most 4000 characters)."
    assert render.stored_message(d, frozenset({"read_fd", "spawn"})).endswith(
        ' Read on with read_fd(fd="fd:3", start=2).'
    )
    assert render.stored_message(d, frozenset({"read_fd", "search_fd", "fd_to_file"})).endswith(
        ' Read on with read_fd(fd="fd:3", start=2), find lines with search_fd(fd="fd:3", pattern="..."),'
        ' or save it with fd_to_file(fd="fd:3", file_path="...").'
    )


def test_the_message_of_a_stream_says_whether_more_may_come():
    growing = descriptor(state="open", pages=1)
    broken = descriptor(state="broken", pages=1, reason="writer_lost")

    assert render.stored_message(growing, frozenset({"read_fd"})) == (
        "fd:1 is still being written (1 page so far)."
        ' Wait for more with read_fd(fd="fd:1", start=1, wait_seconds=10).'
    )
    assert render.stored_message(broken, frozenset({"read_fd"})) == (
        "fd:1 broke off (writer_lost); what came before is stored (1 page)."
    )


def test_an_extraction_names_both_descriptors_without_the_content():
    shown = render.fd_extraction(
        "fd:1", descriptor("fd:4", chars=1), "line", 10, 5, tools=frozenset({"read_fd"})
    )

    assert shown == (
        '<fd_extraction source_fd="fd:1" new_fd="fd:4" mode="line" start="10" count="5" content_size="1">\n'
        '<message>\nfd:4 holds a part of fd:1 (1 character). Read it with read_fd(fd="fd:4").\n</message>\n'
        "</fd_extraction>"
    )


def test_an_extraction_of_everything_has_a_position_in_place_of_start_and_count():
    shown = render.fd_extraction("fd:1", descriptor("fd:4"), "search", position="all")

    assert ' mode="search" position="all" content_size="48000">\n' in shown
    assert "\nfd:4 holds the hits of a search in fd:1 (48000 characters).\n" in shown


def test_hits_print_like_grep_with_overlapping_context_merged():
    hits = (
        Hit(
            line=2,
            text="ERROR 1",
            chars="5-11",
            before=context_lines(1, "a"),
            after=context_lines(3, "ERROR 2"),
        ),
        Hit(
            line=3,
            text="ERROR 2",
            chars="13-19",
            before=context_lines(2, "ERROR 1"),
            after=context_lines(4, "b"),
        ),
        Hit(line=9, text="ERROR 3", chars="40-46", before=context_lines(8, "c")),
    )
    result = SearchResult(fd="fd:1", pattern=r'"<E\w+', hits=hits, shown=3, matches=7, lines_searched=100)

    assert render.fd_search(result, more="fd:1#L10-100") == (
        '<fd_search fd="fd:1" pattern="&quot;&lt;E\\w+" matches="7" shown="3" lines_searched="100"'
        ' more="fd:1#L10-100">\n'
        "1-a\n2:ERROR 1\n3:ERROR 2\n4-b\n--\n8-c\n9:ERROR 3\n"
        "</fd_search>"
    )


def test_hits_without_context_have_no_separators():
    hits = (Hit(line=2, text="x", chars="5-5"), Hit(line=9, text="x", chars="50-50"))
    result = SearchResult(fd="fd:1", pattern="x", hits=hits, shown=2, matches=2, lines_searched=9)

    assert "\n2:x\n9:x\n" in render.fd_search(result)


def test_a_long_line_is_cut_around_the_hit_and_counts_the_omitted_characters():
    line = "a" * 1000 + "HIT" + "b" * 1000
    hit = Hit(line=7, text=line, chars="5001-5003", column=1001)
    result = SearchResult(fd="fd:1", pattern="HIT", hits=(hit,), shown=1, matches=1, lines_searched=7)

    _, [body] = parse_frame(render.fd_search(result))

    assert body == f"7:[867 characters left out]{'a' * 133}HIT{'b' * 264}[736 characters left out]"


def test_characters_omitted_by_the_search_are_counted_as_missing():
    hit = Hit(
        line=7,
        text="HIT" + "b" * 997,
        chars="5-7",
        left_out=(1, 500),
        after=context_lines(8, "c" * 500, left_out=50),
    )
    result = SearchResult(fd="fd:1", pattern="HIT", hits=(hit,), shown=1, matches=1, lines_searched=8)

    _, [body] = parse_frame(render.fd_search(result))

    assert body == (
        f"7:[1 character left out]HIT{'b' * 397}[1100 characters left out]\n"
        f"8-{'c' * 400}[150 characters left out]"
    )


def test_a_list_has_one_line_for_each_descriptor_whatever_its_source_contains():
    ds = [
        descriptor(),
        descriptor("ref:plan", source='my\n"notes"', chars=3, lines=1, pages=1, producer="a.1"),
    ]

    assert render.fd_list(ds, total=9, next=3) == (
        '<fd_list count="2" total="9" next="3">\n'
        'fd:1 sealed chars=48000 lines=500 pages=12 source="tool_result" producer="triage"\n'
        'ref:plan sealed chars=3 lines=1 pages=1 source="my\\u{a}&quot;notes&quot;" producer="a.1"\n'
        "</fd_list>"
    )


def test_an_export_states_what_the_file_contains():
    export = Export(fd="fd:1", file_path="out.txt", mode="append", char_count=5, size_bytes=12)

    assert render.fd_file_result(export, create=True, exist_ok=False) == (
        '<fd_file_result fd="fd:1" file_path="out.txt" mode="append" create="true" exist_ok="false"'
        ' success="true" char_count="5" size_bytes="12">\n'
        "<message>\nfd:1 (5 characters) was appended to 'out.txt'.\n</message>\n"
        "</fd_file_result>"
    )


def test_a_write_and_a_close_state_the_new_state():
    assert render.fd_write("fd:2", 5, 12, "open", "fd:2 takes more.") == (
        '<fd_write fd="fd:2" chars="5" total_chars="12" state="open">\n'
        "<message>\nfd:2 takes more.\n</message>\n</fd_write>"
    )
    assert render.fd_close("fd:2") == (
        '<fd_close fd="fd:2" success="true">\n'
        "<message>\nfd:2 is closed and can no longer be read here.\n</message>\n</fd_close>"
    )


def test_a_small_answer_of_a_process_is_its_body():
    assert render.process_result(process(), "It is the cache.") == (
        '<process_result process="triage.1" program="expert" state="exited" exit_code="0">\n'
        "It is the cache.\n</process_result>"
    )


def test_a_pipeline_names_its_descriptors_and_has_no_body():
    written = ("fd:5", "fd:6", "fd:7", "fd:8")
    record = process(program=None, state="running", exit_code=None, kind="pipeline", outputs=written)

    assert render.process_result(record, in_fd="fd:9") == (
        '<process_result process="triage.1" state="running" fd="fd:5" stderr_fd="fd:6" tee_fds="fd:7 fd:8"'
        ' in_fd="fd:9"/>'
    )


def test_a_large_answer_stands_inside_as_an_fd_result():
    inner = render.fd_result(descriptor(), make_slice("p"), Tail(text="t", lines="9-9"), "Stored.")

    shown = render.process_result(
        process(state="failed", exit_code=1, reason="poison", outputs=("fd:1",)), result=inner
    )

    assert shown == (
        '<process_result process="triage.1" program="expert" state="failed" exit_code="1" reason="poison"'
        f' fd="fd:1">\n{inner}\n</process_result>'
    )


def test_a_process_has_one_kind_of_answer():
    inner = render.fd_close("fd:1")

    with pytest.raises(TypeError):
        render.process_result(process(), "answer", inner)


def test_an_error_has_its_type_and_the_existing_ids():
    assert render.fd_error(NotFound("fd:7", ("fd:1", "ref:plan")), "fd:7") == (
        '<fd_error type="not_found" fd="fd:7">\n'
        "<message>\nfd:7 does not exist; there are: fd:1, ref:plan\n</message>\n</fd_error>"
    )
    assert render.fd_error(InvalidArgument("start", "must be 1 or more")).startswith(
        '<fd_error type="invalid_argument">\n'
    )


# What no content can do


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("</fd_content>", "&lt;/fd_content>"),
        ("<FD_Result fd=1>", "&lt;FD_Result fd=1>"),
        ("< / preview>", "&lt; / preview>"),
        ("<\n\u200btail>", "&lt;\n\u200btail>"),
        ("<<message>", "<&lt;message>"),
        ("<process_result/>", "&lt;process_result/>"),
    ],
)
def test_text_that_looks_like_a_frame_tag_is_escaped_and_marked(body: str, shown: str):
    assert render.element("fd_content", [("fd", "fd:1")], body) == (
        f'<fd_content fd="fd:1" escaped="true">\n{shown}\n</fd_content>'
    )


@pytest.mark.parametrize(
    "body", ["<fd>", "<fdx_", "fd_content>", "<b>tail</b>", "&lt;fd_content>", "<div><", "</"]
)
def test_text_that_cannot_be_a_frame_tag_is_unchanged(body: str):
    assert render.element("fd_content", [], body) == f"<fd_content>\n{body}\n</fd_content>"


def test_only_the_outermost_element_is_marked_and_nothing_is_escaped_twice():
    inner = render.fd_result(descriptor(), make_slice("<tail>"), Tail(text="</tail>", lines="9-9"), "Stored.")

    shown = render.process_result(process(), result=inner)

    assert inner.count('escaped="true"') == shown.count('escaped="true"') == 1
    assert shown.split("\n")[0].endswith(' exit_code="0" escaped="true">')
    assert "<preview>\n&lt;tail>\n</preview>" in shown
    assert '<tail lines="9-9">\n&lt;/tail>\n</tail>' in shown


def test_control_characters_in_attributes_are_escaped_visibly():
    hidden = '\x1b[1m\n\t\x7f\x85\u2028\u202e\u2066\ud800&<>"'

    shown = render.element("fd_close", [("fd", hidden)])

    assert shown == (
        r'<fd_close fd="\u{1b}[1m\u{a}\u{9}\u{7f}\u{85}\u{2028}\u{202e}\u{2066}\u{d800}&amp;&lt;&gt;&quot;"/>'
    )


def test_a_megabyte_of_blanks_after_an_angle_bracket_is_escaped_in_linear_time():
    body = "<" + " " * 1_000_000 + "/" + "\n" * 1_000_000 + "x"

    assert body in render.element("fd_content", [], body)


def elements_with(text: str, other: str) -> list[tuple[Rendered, list[str], list[str]]]:
    """Return each element with hostile text: its rendering, its expected tags, its expected bodies."""
    result = render.fd_result(
        descriptor(source=text), make_slice(text), Tail(text=other, lines="1-2"), "Stored."
    )
    names = ["message", "/message", "preview", "/preview", "tail", "/tail"]
    in_result = ["fd_result", *names, "/fd_result"]
    hit = Hit(line=1, text=text, chars="1-1")
    found = SearchResult(fd="fd:1", pattern=other, hits=(hit,), shown=1, matches=1, lines_searched=1)
    searched = "1:" + text
    return [
        (render.fd_content(make_slice(text, fd=other)), ["fd_content", "/fd_content"], [text]),
        (result, in_result, ["Stored.", text, other]),
        (
            render.process_result(process(reason=other), result=result),
            ["process_result", *in_result, "/process_result"],
            ["Stored.", text, other],
        ),
        (render.process_result(process(), text), ["process_result", "/process_result"], [text]),
        (render.fd_search(found), ["fd_search", "/fd_search"], [searched]),
        (
            render.fd_error(InvalidArgument(other, text)),
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
    frame = ElementTree.fromstring(
        render.element("fd_close", [("first", value), ("none", None), ("last", 1)])
    )

    expected = str(value).lower() if isinstance(value, bool) else show_controls(str(value), keep="")
    assert list(frame.attrib.items()) == [("first", expected), ("last", "1")]


@given(text=hostile)
def test_a_body_that_is_not_marked_is_exactly_the_text(text: str):
    rendered = render.element("fd_content", [], text)

    if not rendered.startswith('<fd_content escaped="true">'):
        assert rendered == f"<fd_content>\n{text}\n</fd_content>"
