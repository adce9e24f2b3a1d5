"""Ranges of bytes and names of files in HTTP headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.inspector.web.byte_ranges import Unsatisfiable, disposition, file_name, parse_range
from fdstore.inspector.web.descriptor_rows import hex_rows


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (None, None), ("bytes=0-99", (0, 99)), ("bytes=900-", (900, 999)), ("bytes=-1", (999, 999)),
        ("bytes=-5000", (0, 999)), ("bytes=990-5000", (990, 999)), ("Bytes = 5 - 6", (5, 6)),
        ("bytes=1-2,5-6", None), ("bytes=5-3", None), ("bytes=-", None), ("lines=1-2", None),
        ("bytes=a-b", None),
    ],
)  # fmt: skip
def test_one_range_is_served_and_others_mean_the_whole(
    header: str | None, found: tuple[int, int] | None
) -> None:
    assert parse_range(header, 1000) == found


@pytest.mark.parametrize(("header", "size"), [("bytes=1000-", 1000), ("bytes=-0", 9), ("bytes=0-", 0)])
def test_a_range_past_the_end_is_refused(header: str, size: int) -> None:
    with pytest.raises(Unsatisfiable):
        parse_range(header, size)


@pytest.mark.parametrize(
    ("fd", "source", "name"),
    [
        ("fd:3", "logs/build.log", "build.log"),
        ("fd:3", "..\\x\\run.bat", "run.bat"),
        ("name:notes/plan.md", "text", "plan.md"),
        ("fd:3", "pipe: grep a | sort", "triage.1-fd-3.txt"),
        ("fd:3", ".bashrc", "triage.1-fd-3.txt"),
        ("fd:3", "a\u202egnp.exe", "triage.1-fd-3.txt"),
        ("ref:plan", "a\r\nb.txt", "triage.1-ref-plan.txt"),
    ],
)
def test_a_file_has_the_name_of_its_source_if_that_is_one(fd: str, source: str, name: str) -> None:
    assert file_name("triage.1", fd, source, ".txt") == name


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_name_forges_a_header(name: str) -> None:
    header = disposition("attachment", name)

    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
    assert header.count(";") == 2


def test_a_hex_dump_has_offsets_and_printable_characters() -> None:
    rows = hex_rows(bytes(range(60, 80)), 0x1000)

    assert [(row.offset, row.ascii) for row in rows] == [(0x1000, "<=>?@ABCDEFGHIJK"), (0x1010, "LMNO")]
    assert rows[0].hex == "3c 3d 3e 3f 40 41 42 43  44 45 46 47 48 49 4a 4b"
