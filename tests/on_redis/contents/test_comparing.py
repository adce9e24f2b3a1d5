"""Two stored texts are compared as diff -u compares files."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore.client import Process
from fdstore.errors import Conflict, InvalidArgument, NotFound, NotText, PositionOutOfRange, TooLarge
from fdstore.store.contents import comparing
from fdstore.text.selection import parse_request
from tests.memory import assert_takes_less

LOG = "".join(f"line {number}\n" for number in range(1, 41))
CHANGED = LOG.replace("line 3\n", "").replace("line 20\n", "line twenty\n").replace("line 40\n", "line 40")

TEXTS = st.lists(st.sampled_from(["a", "b\n", "c\r\n", "\n", "é😀\n", "-- x\n"]), max_size=25).map("".join)


def patched(old: str, diff: str) -> str:
    """Return what `patch` makes of a text."""
    lines, made, at = list(StringIO(old, newline="\n")), [], 0
    rows = list(StringIO(diff.replace("\n\\ No newline at end of file\n", "\0"), newline="\n"))
    rows = [row for each in rows[2:] for row in re.split(r"(?<=\0)", each) if row]
    for row in rows:
        text = row[1:].removesuffix("\0")
        if heading := re.match(r"@@ -(\d+)(,0)?", row):
            start = int(heading[1]) - (heading[2] is None)
            made += lines[at:start]
            at = start
        elif row[0] == "+":
            made.append(text)
        else:
            assert lines[at] == text
            made += [text] if row[0] == " " else []
            at += 1
    return "".join(made + lines[at:])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=TEXTS, new=TEXTS, context=st.integers(0, 3), page_size=st.integers(1, 9))
def test_a_diff_makes_the_new_text_of_the_old_one(
    proc: Process, old: str, new: str, context: int, page_size: int
) -> None:
    a, b = proc.create(old, page_size=page_size), proc.create(new)

    diff = proc.diff(a.fd, b.fd, context)

    assert bool(diff) == (old != new)
    assert patched(old, diff) == new


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=TEXTS, new=TEXTS, most=st.integers(0, 12))
def test_a_diff_that_is_cut_has_the_first_lines_and_counts_all(
    proc: Process, old: str, new: str, most: int
) -> None:
    a, b = (parse_request(proc.create(text, page_size=4).fd) for text in (old, new))

    def diff(most_lines: int) -> tuple[object, str]:
        pieces: list[bytes] = []
        operation = comparing.compare(proc.handle, a, b, write=pieces.append, most_lines=most_lines)
        return proc.store.run(operation), b"".join(pieces).decode()

    (counted, cut), (counted_all, whole) = diff(most), diff(1000)

    assert counted == counted_all
    assert whole.startswith(cut)
    lines = [line for line in StringIO(cut, newline="\n").readlines()[2:] if line[0] in " +-"]
    assert len(lines) <= most
    assert cut == whole or len(lines) == most


def test_a_diff_is_that_of_diff(proc: Process) -> None:
    proc.create(LOG, page_size=50)
    proc.create(CHANGED)

    assert proc.diff("fd:1", "fd:2", 1) == (
        "--- fd:1\n+++ fd:2\n"
        "@@ -2,3 +2,2 @@\n line 2\n-line 3\n line 4\n"
        "@@ -19,3 +18,3 @@\n line 19\n-line 20\n+line twenty\n line 21\n"
        "@@ -39,2 +38,2 @@\n line 39\n-line 40\n+line 40\n\\ No newline at end of file\n"
    )


def test_parts_are_compared_and_lines_numbered_as_in_the_whole_texts(proc: Process) -> None:
    proc.create(LOG, page_size=50)
    proc.put("plan.md", CHANGED)

    assert proc.diff("fd:1#L20-22", "name:plan.md#L19-21", 0) == (
        "--- fd:1#L20-22\n+++ name:plan.md#L19-21\n@@ -20 +19 @@\n-line 20\n+line twenty\n"
    )
    assert proc.diff("fd:1#L4-10", "name:plan.md#L3-9") == ""
    # characters may begin and end inside lines
    assert proc.diff("fd:1#C3-9", "fd:1#C10-14", 0) == (
        "--- fd:1#C3-9\n+++ fd:1#C10-14\n@@ -1,2 +2 @@\n-ne 1\n-li\n\\ No newline at end of file\n+ne 2\n"
    )


def test_what_cannot_be_compared_is_an_error(proc: Process) -> None:
    proc.create(LOG)
    proc.create(b"PK\x03\x04")

    for a, b, error in [
        ("fd:1", "fd:2", NotText),
        ("fd:9", "fd:1", NotFound),
        ("fd:1", "fd:1#L90", PositionOutOfRange),
    ]:
        with pytest.raises(error):
            proc.diff(a, b)
    with pytest.raises(InvalidArgument, match="context: must be an integer from 0 to 100"):
        proc.diff("fd:1", "fd:1", 101)


@pytest.mark.parametrize(
    ("limit", "what"), [("MAX_LINES", "fd:1 has 40 lines"), ("MAX_DIFFERING", "what differs .* has 38 lines")]
)
def test_beyond_its_limits_it_says_to_compare_parts(
    proc: Process, monkeypatch: pytest.MonkeyPatch, limit: str, what: str
) -> None:
    monkeypatch.setattr(comparing, limit, 30)
    proc.create(LOG)
    proc.create(CHANGED)

    with pytest.raises(TooLarge, match=f"{what}.*limit of 30; compare parts, such as fd:3#L1-30"):
        proc.diff("fd:1", "fd:2")
    assert "-line 20\n" in proc.diff("fd:1#L10-30", "fd:2#L9-29")


def test_a_name_that_means_another_text_meanwhile_is_a_conflict(proc: Process) -> None:
    proc.put("plan.md", LOG)
    other = proc.create(CHANGED)

    def replace(piece: bytes) -> None:
        proc.put("plan.md", "another\n" * 40)

    a, b = parse_request("name:plan.md"), parse_request(other.fd)
    with pytest.raises(Conflict):
        proc.store.run(comparing.compare(proc.handle, a, b, write=replace))


@pytest.mark.thorough("a bound of memory, at many megabytes")
def test_memory_does_not_grow_with_the_length_of_lines(proc: Process, tmp_path: Path) -> None:
    line = "a long line of words " * 500_000
    (tmp_path / "old").write_text(f"{line}\n{line}\nend\n")
    (tmp_path / "new").write_text(f"{line}\n{line}!\nend\n")
    proc.ingest(tmp_path / "old")
    proc.ingest(tmp_path / "new")

    def compare(_: int) -> None:
        sizes: list[int] = []
        found = proc.store.run(
            comparing.compare(
                proc.handle,
                parse_request("fd:1"),
                parse_request("fd:2"),
                context=0,
                write=lambda piece: sizes.append(len(piece)),
            )
        )
        assert (found.removed, found.added) == (1, 1)
        assert sum(sizes) > 2 * len(line)

    assert_takes_less(len(line), compare)
