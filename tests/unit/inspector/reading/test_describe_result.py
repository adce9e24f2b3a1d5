"""Results in words for people."""

from __future__ import annotations

import pytest

from fdstore.elements import render, render_search
from fdstore.elements.build import Rendered
from fdstore.elements.facts import NO_FACTS, ResultFacts, in_block, join_facts
from fdstore.errors import NotFound
from fdstore.inspector.reading.describe_result import describe_result
from fdstore.model.records import Comparison, Export, SearchResult
from tests.unit.rendering import descriptor, make_slice, process

STORED = render.fd_result(descriptor("fd:3", pages=1), None, None, "Stored.", 7)
PICTURE = descriptor(kind="bytes", bytes=12345, media_type="image/png")
DIFF = Comparison(a="fd:1#L1-9", b="fd:2", removed=1, added=2)
EXPORT = Export(fd="fd:1", file_path="a.txt", mode="append", char_count=3, size_bytes=1234)
SEARCH = SearchResult(
    fd="fd:1", pattern="a|b", hits=(), shown=0, matches=12, total_hits=12, lines_searched=99
)


@pytest.mark.parametrize(
    ("rendered", "words"),
    [
        (STORED, "fd:3, stored: 1 page, 48,000 characters"),
        (render.fd_diff(DIFF, "@@"), "fd:1#L1-9 to fd:2, +2 -1 lines"),
        (render.fd_result_of_bytes(PICTURE, "Stored."), "fd:1, stored: 12,345 bytes of image/png"),
        (render.fd_content(make_slice("x")), "fd:1, page 2 of 3, lines 41-80"),
        (render.fd_content(make_slice("x", page="all")), "fd:1, page all of 3, lines 41-80"),
        (render.fd_content(make_slice("x", page=None, mode="line")), "fd:1, lines 41-80"),
        (render.fd_content_of_bytes(PICTURE), "fd:1, image/png"),
        (
            render.fd_extraction("fd:1", descriptor("fd:2"), "page", 1, 2),
            "fd:2, a part of fd:1, 48,000 characters",
        ),
        (
            render.fd_extraction("fd:1", descriptor("fd:2"), "page", position="all"),
            "fd:2, all of fd:1, 48,000 characters",
        ),
        (
            render.fd_extraction("fd:1", descriptor("fd:2"), "search", position="all", matches=3),
            "fd:2, hits of a search in fd:1, 48,000 characters",
        ),
        (render_search.fd_search(SEARCH), "fd:1, pattern a|b, matches 12"),
        (render.fd_list([descriptor()], 5), "total 5"),
        (render.fd_file_result(EXPORT, create=True, exist_ok=True), "fd:1 appended to a.txt, 1,234 bytes"),
        (render.fd_write(descriptor("fd:2", state="open"), 5, "It takes more."), "fd:2"),
        (render.fd_close("fd:2"), "fd:2"),
        (
            render.process_result(process(state="failed", exit_code=1, reason="poison", outputs=("fd:4",))),
            "triage.1 failed with code 1, poison, fd:4",
        ),
        (render.process_result(process(), result=STORED), "triage.1 exited with code 0"),
        (render.fd_error(NotFound("fd:9", ()), "fd:9"), "not_found, fd:9"),
    ],
)
def test_what_a_result_is_about_is_said_in_words(rendered: Rendered, words: str) -> None:
    assert describe_result(rendered.facts) == words


@pytest.mark.parametrize(
    "facts", [NO_FACTS, in_block(STORED.facts, 1), ResultFacts(expanded=("fd:1#P2",))], ids=str
)
def test_a_result_that_begins_with_other_text_is_not_described(facts: ResultFacts) -> None:
    assert describe_result(facts) == ""


def test_the_descriptors_of_a_result_are_those_of_all_its_parts() -> None:
    ended = render.process_result(process(outputs=("fd:4", "fd:5")), result=STORED)

    assert join_facts(ended.facts, render.fd_close("fd:4").facts).fds == ("fd:4", "fd:3")
