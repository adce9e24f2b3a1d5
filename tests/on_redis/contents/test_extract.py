"""Extractions: parts of a content stored as separate contents with their origin."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, NotFound, PageOutOfRange, PositionOutOfRange
from fdstore.model.records import Origin

LOG = "".join(f"line {n} of the log, é\n" for n in range(1, 2001))


@pytest.mark.parametrize(
    ("how", "begin", "end"),
    [
        ({"mode": "line", "start": 10, "count": 5}, "line 10 ", "line 15 "),
        ({"mode": "line", "start": 1999, "count": 99}, "line 1999 ", None),
        ({"start": 2, "count": 3}, None, None),
        ({"mode": "char", "start": 7, "count": 5000}, None, None),
        ({"start": 1}, None, None),
    ],
)
def test_an_extraction_equals_reading_that_part(
    proc: Process, how: dict[str, Any], begin: str | None, end: str | None
) -> None:
    proc.create(LOG, page_size=500)

    made = proc.extract("fd:1", **how)

    read = proc.read("fd:1", **how)
    assert made.fd == "fd:2"
    assert proc.read("fd:2", read_all=True).text == read.text
    assert made.origin == Origin(content="triage/1", fd="fd:1", chars=read.chars, lines=read.lines)
    if begin:
        assert read.text.startswith(begin)
        assert end is None or LOG[LOG.index(begin) : LOG.index(end)] == read.text


def test_an_extraction_without_a_part_is_the_whole_text(proc: Process) -> None:
    proc.create(LOG, page_size=500)

    made = proc.extract("fd:1")

    assert proc.read(made.fd, read_all=True).text == LOG
    assert made.origin == Origin(content="triage/1", fd="fd:1", chars=f"1-{len(LOG)}", lines="1-2000")


def test_an_extraction_inherits_the_page_size_of_its_source_by_default(proc: Process) -> None:
    proc.create(LOG, page_size=500)

    assert proc.extract("fd:1#L1-100").page_size == 500
    assert proc.extract("fd:1#L1-100", page_size=77).page_size == 77


def test_an_extraction_of_an_extraction_is_traced_to_the_first_content(proc: Process) -> None:
    proc.create(LOG, page_size=500)

    proc.extract("fd:1", mode="line", start=101, count=500)
    proc.extract("fd:2", mode="line", start=51, count=100)
    made = proc.extract("fd:3", mode="line", start=10, count=2)

    text = proc.read(made.fd).text
    assert text == "line 160 of the log, é\nline 161 of the log, é\n"
    assert made.origin is not None
    assert (made.origin.content, made.origin.fd, made.origin.lines) == ("triage/1", "fd:1", "160-161")
    first, last = map(int, made.origin.chars.split("-"))
    assert LOG[first - 1 : last] == text


def test_an_extraction_that_begins_inside_a_line_is_traced_too(proc: Process) -> None:
    proc.create("abc\ndef\nghi\n")

    proc.extract("fd:1#C6-10")
    made = proc.extract("fd:2#L2")

    assert proc.read(made.fd).text == "gh"
    assert made.origin == Origin(content="triage/1", fd="fd:1", chars="9-10", lines="3-3")


def test_the_origin_is_kept_after_its_content_is_removed(proc: Process) -> None:
    proc.create(LOG)
    made = proc.extract("fd:1#L12")

    proc.close("fd:1")

    assert proc.stat(made.fd).origin == made.origin
    assert proc.read(made.fd).text == "line 12 of the log, é\n"


def test_an_extraction_of_an_empty_part_is_an_empty_content(proc: Process) -> None:
    proc.create("")

    made = proc.extract("fd:1", mode="line")

    assert (made.chars, made.pages) == (0, 1)
    assert made.origin == Origin(content="triage/1", fd="fd:1", chars="0-0", lines="0-0")


@pytest.mark.thorough("many megabytes")
def test_a_large_part_is_extracted_exactly(proc: Process, store: Store) -> None:
    text = "".join(f"{n:09d}é\n" for n in range(300_000))
    proc.create(text)

    made = store.process("triage").extract("fd:1", mode="char", start=1001, count=3_000_000)

    assert proc.read(made.fd, read_all=True).text == text[1000:3_001_000]


def test_extracting_a_missing_part_is_an_error(proc: Process) -> None:
    proc.create("a\nb\n", page_size=2)

    with pytest.raises(PageOutOfRange):
        proc.extract("fd:1", start=3)
    with pytest.raises(PositionOutOfRange):
        proc.extract("fd:1#L3")
    with pytest.raises(NotFound):
        proc.extract("fd:7")
    with pytest.raises(InvalidArgument):
        proc.extract("fd:1#L1", mode="line")
    with pytest.raises(InvalidArgument):
        proc.extract("fd:1", page_size=0)
    assert [d.fd for d in proc.list()] == ["fd:1"]
