"""What elements say of streams, bytes and hits. Exact examples of each: tests/on_redis/conformance/."""

from __future__ import annotations

import pytest

from fdstore.elements import render, render_search
from fdstore.elements.stored_message import stored_message
from fdstore.model.records import ContextLine, Hit, SearchResult
from fdstore.tools.catalogue import offers_of
from tests.unit.rendering import descriptor, make_slice, parse_frame, process


def context_lines(line: int, text: str, left_out: int = 0) -> tuple[ContextLine, ...]:
    return (ContextLine(line=line, text=text, left_out=left_out),)


def test_a_stream_has_its_state_and_when_ended_the_exit_codes_of_its_chain():
    growing = render.fd_content(make_slice("x", state="open")).text
    ended = render.fd_content(make_slice("x", eof=True, exit_code=0, chain="0,1 0")).text

    assert ' state="open" eof="false">' in growing
    assert ' state="sealed" eof="true" exit_code="0" chain="0,1 0">' in ended
    assert " state=" not in render.fd_content(make_slice("x")).text


def test_a_broken_stream_gives_its_reason_in_every_part_and_in_the_list():
    part = render.fd_content(make_slice("x", state="broken", reason='signal 9 "at once"')).text
    listed = render.fd_list([descriptor(state="broken", reason="writer_lost"), descriptor("fd:2")], 2).text

    assert ' state="broken" reason="signal 9 &quot;at once&quot;" eof="false">' in part
    assert "fd:1 broken chars=" in listed
    assert ' producer="triage" reason="writer_lost"\n' in listed
    assert listed.count("reason") == 1


def test_a_text_of_one_page_has_no_tail_and_an_open_one_is_marked_open():
    shown = render.fd_result(descriptor(pages=1, state="open"), make_slice("x"), None, "Growing.", 7).text

    assert "<tail" not in shown
    assert ' source="tool_result" state="open" tokens="~7">' in shown


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
    result = SearchResult(
        fd="fd:1", pattern=r'"<E\w+', hits=hits, shown=3, matches=7, total_hits=7, lines_searched=100
    )

    assert render_search.fd_search(result, more="fd:1#L10-100").text == (
        '<fd_search fd="fd:1" pattern="&quot;&lt;E\\w+" matches="7" shown="3" lines_searched="100"'
        ' more="fd:1#L10-100">\n'
        "1-a\n2:ERROR 1\n3:ERROR 2\n4-b\n--\n8-c\n9:ERROR 3\n"
        "</fd_search>"
    )


def test_characters_omitted_by_the_search_are_counted_as_missing():
    hit = Hit(
        line=7,
        text="HIT" + "b" * 997,
        chars="5-7",
        left_out=(1, 500),
        after=context_lines(8, "c" * 500, left_out=50),
    )
    result = SearchResult(
        fd="fd:1", pattern="HIT", hits=(hit,), shown=1, matches=1, total_hits=1, lines_searched=8
    )

    _, [body] = parse_frame(render_search.fd_search(result).text)

    assert body == (
        f"7:[1 character left out]HIT{'b' * 397}[1100 characters left out]\n"
        f"8-{'c' * 400}[150 characters left out]"
    )


def test_a_pipeline_names_its_descriptors_and_has_no_body():
    written = ("fd:5", "fd:6", "fd:7", "fd:8")
    record = process(program=None, state="running", exit_code=None, kind="pipeline", outputs=written)

    assert render.process_result(record, in_fd="fd:9").text == (
        '<process_result process="triage.1" state="running" fd="fd:5" stderr_fd="fd:6" tee_fds="fd:7 fd:8"'
        ' in_fd="fd:9"/>'
    )


def test_a_process_has_one_kind_of_answer():
    inner = render.fd_close("fd:1")

    with pytest.raises(TypeError):
        render.process_result(process(), "answer", inner)


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
