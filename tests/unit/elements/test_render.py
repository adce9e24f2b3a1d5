"""Rendered frames are exact: an example of each element."""

from __future__ import annotations

import pytest

from fdstore.elements import render, render_search
from fdstore.elements.render import Tail
from fdstore.elements.stored_message import stored_message
from fdstore.errors import InvalidArgument, NotFound
from fdstore.records import ContextLine, Export, Hit, SearchResult
from fdstore.tools.catalogue import offers_of
from tests.unit.rendering import descriptor, make_slice, parse_frame, process


def context_lines(line: int, text: str, left_out: int = 0) -> tuple[ContextLine, ...]:
    return (ContextLine(line=line, text=text, left_out=left_out),)


def test_a_page_is_rendered_raw_between_two_line_breaks():
    shown = render.fd_content(make_slice("if a < b && c > d:\n\tprint('&amp;')\n")).text

    assert shown == (
        '<fd_content fd="fd:1" page="2" pages="3" continued="false" truncated="true" lines="41-80"'
        ' total_lines="100" chars="4001-8000">\n'
        "if a < b && c > d:\n\tprint('&amp;')\n\n"
        "</fd_content>"
    )


def test_a_complete_content_has_page_all():
    shown = render.fd_content(make_slice("", page="all")).text

    assert shown.startswith('<fd_content fd="fd:1" page="all" pages="3" ')
    assert shown.endswith(">\n\n</fd_content>")


def test_ranges_of_lines_characters_or_pages_state_the_range_in_place_of_the_page():
    shown = render.fd_content(make_slice("x", page=None, mode="line", start=41, count=40)).text

    assert shown == (
        '<fd_content fd="fd:1" pages="3" continued="false" truncated="true" lines="41-80" total_lines="100"'
        ' chars="4001-8000" mode="line" start="41" count="40">\nx\n</fd_content>'
    )


def test_a_stream_has_its_state_and_when_ended_the_exit_codes_of_its_chain():
    growing = render.fd_content(make_slice("x", state="open")).text
    ended = render.fd_content(make_slice("x", eof=True, exit_code=0, chain="0,1 0")).text

    assert ' chars="4001-8000" state="open" eof="false">' in growing
    assert ' chars="4001-8000" state="sealed" eof="true" exit_code="0" chain="0,1 0">' in ended
    assert " state=" not in render.fd_content(make_slice("x")).text


def test_a_broken_stream_gives_its_reason_in_every_part_and_in_the_list():
    part = render.fd_content(make_slice("x", state="broken", reason='signal 9 "at once"')).text
    listed = render.fd_list([descriptor(state="broken", reason="writer_lost"), descriptor("fd:2")], 2).text

    assert ' state="broken" reason="signal 9 &quot;at once&quot;" eof="false">' in part
    assert "fd:1 broken chars=" in listed
    assert ' producer="triage" reason="writer_lost"\n' in listed
    assert listed.count("reason") == 1


def test_a_stored_text_is_rendered_with_its_first_page_and_its_tail():
    d = descriptor(source="web search")
    first = make_slice("first page\n", page=1, lines="1-40")

    shown = render.fd_result(d, first, Tail(text="the end", lines="499-500"), "Stored.", 12345).text

    assert shown == (
        '<fd_result fd="fd:1" pages="12" truncated="true" lines="1-40" total_lines="500" total_chars="48000"'
        ' source="web search" tokens="~12000">\n'
        "<message>\nStored.\n</message>\n"
        "<preview>\nfirst page\n\n</preview>\n"
        '<tail lines="499-500">\nthe end\n</tail>\n'
        "</fd_result>"
    )


def test_a_text_of_one_page_has_no_tail_and_an_open_one_is_marked_open():
    shown = render.fd_result(descriptor(pages=1, state="open"), make_slice("x"), None, "Growing.", 7).text

    assert "<tail" not in shown
    assert ' source="tool_result" state="open" tokens="~7">' in shown


def test_the_message_names_only_enabled_tools():
    d = descriptor("fd:3")

    assert stored_message(d) == "The text is stored as fd:3 (12 pages of at most 4000 characters)."
    assert stored_message(d, offers_of({"read_fd", "spawn"})).endswith(
        ' Read on with read_fd(fd="fd:3", start=2).'
    )
    assert stored_message(d, offers_of({"read_fd", "search_fd", "fd_to_file"})).endswith(
        ' Read on with read_fd(fd="fd:3", start=2), find lines with search_fd(fd="fd:3", pattern="..."),'
        ' or save it with fd_to_file(fd="fd:3", file_path="...").'
    )


def test_the_message_offers_the_tools_that_change_least_first():
    d = descriptor(kind="bytes", media_type="image/png", bytes=3, chars=0, lines=0)

    message = stored_message(d, offers_of({"fd_to_file", "pipe", "read_fd"}))

    assert message.index("read_fd") < message.index("pipe") < message.index("fd_to_file")


def test_the_message_of_a_stream_says_whether_more_may_come():
    growing = descriptor(state="open", pages=1)
    broken = descriptor(state="broken", pages=1, reason="writer_lost")

    assert stored_message(growing, offers_of({"read_fd"})) == (
        "fd:1 is still being written (1 page so far)."
        ' Wait for more with read_fd(fd="fd:1", start=1, wait_seconds=10).'
    )
    assert stored_message(broken, offers_of({"read_fd"})) == (
        "fd:1 broke off (writer_lost); what came before is stored (1 page)."
    )


def test_an_extraction_names_both_descriptors_without_the_content():
    shown = render.fd_extraction(
        "fd:1", descriptor("fd:4", chars=1), "line", 10, 5, tools=frozenset({"read_fd"})
    ).text

    assert shown == (
        '<fd_extraction source_fd="fd:1" new_fd="fd:4" mode="line" start="10" count="5" content_size="1">\n'
        '<message>\nfd:4 holds a part of fd:1 (1 character). Read it with read_fd(fd="fd:4").\n</message>\n'
        "</fd_extraction>"
    )


def test_an_extraction_of_everything_has_a_position_in_place_of_start_and_count():
    shown = render.fd_extraction("fd:1", descriptor("fd:4"), "search", position="all").text

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

    assert render_search.fd_search(result, more="fd:1#L10-100").text == (
        '<fd_search fd="fd:1" pattern="&quot;&lt;E\\w+" matches="7" shown="3" lines_searched="100"'
        ' more="fd:1#L10-100">\n'
        "1-a\n2:ERROR 1\n3:ERROR 2\n4-b\n--\n8-c\n9:ERROR 3\n"
        "</fd_search>"
    )


def test_hits_without_context_have_no_separators():
    hits = (Hit(line=2, text="x", chars="5-5"), Hit(line=9, text="x", chars="50-50"))
    result = SearchResult(fd="fd:1", pattern="x", hits=hits, shown=2, matches=2, lines_searched=9)

    assert "\n2:x\n9:x\n" in render_search.fd_search(result).text


def test_a_long_line_is_cut_around_the_hit_and_counts_the_omitted_characters():
    line = "a" * 1000 + "HIT" + "b" * 1000
    hit = Hit(line=7, text=line, chars="5001-5003", column=1001)
    result = SearchResult(fd="fd:1", pattern="HIT", hits=(hit,), shown=1, matches=1, lines_searched=7)

    _, [body] = parse_frame(render_search.fd_search(result).text)

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

    _, [body] = parse_frame(render_search.fd_search(result).text)

    assert body == (
        f"7:[1 character left out]HIT{'b' * 397}[1100 characters left out]\n"
        f"8-{'c' * 400}[150 characters left out]"
    )


def test_a_list_has_one_line_for_each_descriptor_whatever_its_source_contains():
    ds = [
        descriptor(),
        descriptor("ref:plan", source='my\n"notes"', chars=3, lines=1, pages=1, producer="a.1"),
    ]

    assert render.fd_list(ds, total=9, next=3).text == (
        '<fd_list count="2" total="9" next="3">\n'
        'fd:1 sealed chars=48000 lines=500 pages=12 source="tool_result" producer="triage"\n'
        'ref:plan sealed chars=3 lines=1 pages=1 source="my\\u{a}&quot;notes&quot;" producer="a.1"\n'
        "</fd_list>"
    )


def test_an_export_states_what_the_file_contains():
    export = Export(fd="fd:1", file_path="out.txt", mode="append", char_count=5, size_bytes=12)

    assert render.fd_file_result(export, create=True, exist_ok=False).text == (
        '<fd_file_result fd="fd:1" file_path="out.txt" mode="append" create="true" exist_ok="false"'
        ' success="true" char_count="5" size_bytes="12">\n'
        "<message>\nfd:1 (5 characters) was appended to 'out.txt'.\n</message>\n"
        "</fd_file_result>"
    )


def test_a_write_and_a_close_state_the_new_state():
    assert render.fd_write("fd:2", 5, 12, "open", "fd:2 takes more.").text == (
        '<fd_write fd="fd:2" chars="5" total_chars="12" state="open">\n'
        "<message>\nfd:2 takes more.\n</message>\n</fd_write>"
    )
    assert render.fd_close("fd:2").text == (
        '<fd_close fd="fd:2" success="true">\n'
        "<message>\nfd:2 is closed and can no longer be read here.\n</message>\n</fd_close>"
    )


def test_a_small_answer_of_a_process_is_its_body():
    assert render.process_result(process(), "It is the cache.").text == (
        '<process_result process="triage.1" program="expert" state="exited" exit_code="0">\n'
        "It is the cache.\n</process_result>"
    )


def test_a_pipeline_names_its_descriptors_and_has_no_body():
    written = ("fd:5", "fd:6", "fd:7", "fd:8")
    record = process(program=None, state="running", exit_code=None, kind="pipeline", outputs=written)

    assert render.process_result(record, in_fd="fd:9").text == (
        '<process_result process="triage.1" state="running" fd="fd:5" stderr_fd="fd:6" tee_fds="fd:7 fd:8"'
        ' in_fd="fd:9"/>'
    )


def test_a_large_answer_stands_inside_as_an_fd_result():
    inner = render.fd_result(descriptor(), make_slice("p"), Tail(text="t", lines="9-9"), "Stored.", 7)

    shown = render.process_result(
        process(state="failed", exit_code=1, reason="poison", outputs=("fd:1",)), result=inner
    ).text

    assert shown == (
        '<process_result process="triage.1" program="expert" state="failed" exit_code="1" reason="poison"'
        f' fd="fd:1">\n{inner}\n</process_result>'
    )


def test_a_process_has_one_kind_of_answer():
    inner = render.fd_close("fd:1")

    with pytest.raises(TypeError):
        render.process_result(process(), "answer", inner)


def test_an_error_has_its_type_and_the_existing_ids():
    assert render.fd_error(NotFound("fd:7", ("fd:1", "ref:plan")), "fd:7").text == (
        '<fd_error type="not_found" fd="fd:7">\n'
        "<message>\nfd:7 does not exist; there are: fd:1, ref:plan\n</message>\n</fd_error>"
    )
    assert render.fd_error(InvalidArgument("start", "must be 1 or more")).text.startswith(
        '<fd_error type="invalid_argument">\n'
    )


@pytest.mark.parametrize(
    ("media_type", "state", "ways"),
    [
        ("image/png", "sealed", 'Look at it with read_fd(fd="fd:1"), or pass it to a command'),
        ("application/zip", "sealed", 'Pass it to a command with pipe(commands=["..."], in_fd="fd:1").'),
        ("application/zip", "open", "is still being written (3 bytes of application/zip so far)."),
    ],
)
def test_stored_bytes_say_what_can_be_done_with_them(media_type, state, ways):
    d = descriptor(kind="bytes", media_type=media_type, state=state, bytes=3, chars=0, lines=0)

    message = stored_message(d, offers_of({"read_fd", "search_fd", "pipe"}))

    assert ways in message
    shown = render.fd_result_of_bytes(d, message).text
    assert f' kind="bytes" media_type="{media_type}" size_bytes="3">' in shown
    assert shown.index(" source=") < shown.index(" kind=")  # in the order of texts: what they lack left out
