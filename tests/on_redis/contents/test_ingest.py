"""Files are stored exactly, or not at all."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Process
from fdstore.errors import FDStoreError, InvalidArgument, PathRefused, TargetMissing
from tests.on_redis.texts import TEXTS


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_is_stored_exactly(proc: Process, tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.txt"
    path.write_bytes(TEXTS[name].encode())

    d = proc.ingest(path)

    assert d.source == f"{name}.txt"
    assert proc.read(d.fd, read_all=True).text == TEXTS[name]


def test_an_open_file_is_read_from_its_current_position(proc: Process) -> None:
    file = io.BytesIO(b"skipped\nkept\n")
    file.readline()

    assert proc.read(proc.ingest(file, source="tool").fd).text == "kept\n"
    assert not file.closed


class Dribble(io.RawIOBase):
    """A binary file whose reads return three bytes at a time, as a pipe may."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._file.read(min(size, 3))


def test_short_reads_that_split_characters_are_stored_exactly(proc: Process) -> None:
    text = "漢字\N{GRINNING FACE}\n" * 50

    d = proc.ingest(Dribble(text.encode()), source="pipe", page_size=11)

    assert proc.read(d.fd, read_all=True).text == text


def test_an_ingest_reports_its_progress_in_bytes(proc: Process) -> None:
    progress: list[int] = []

    proc.ingest(io.BytesIO(b"x" * 2_500_000), source="big", progress=progress.append)

    assert progress == sorted(progress)
    assert progress[-1] == 2_500_000


def test_invalid_utf8_is_refused_unless_the_caller_chose_a_treatment(proc: Process) -> None:
    data = b"good\n" * 300_000 + b"bad \xff\xc3\n"

    with pytest.raises(InvalidArgument, match="byte 1500005 is not UTF-8"):
        proc.ingest(io.BytesIO(data), source="x")
    d = proc.ingest(io.BytesIO(data), source="x", errors="backslashreplace")

    assert d.fd == "fd:1"
    assert proc.read(d.fd, mode="line", start=300_001).text == "bad \\xff\\xc3\n"


@pytest.mark.parametrize("errors", ["ignore", "replace", "surrogateescape", None, 1])
def test_other_decoding_error_handlers_are_refused(proc: Process, errors: Any) -> None:
    with pytest.raises(InvalidArgument, match="strict, backslashreplace or bytes"):
        proc.ingest(io.BytesIO(b""), source="x", errors=errors)


def test_files_that_cannot_be_read_are_typed_errors(proc: Process, tmp_path: Path) -> None:
    with pytest.raises(TargetMissing):
        proc.ingest(tmp_path / "absent")
    with pytest.raises(PathRefused, match="directory"):
        proc.ingest(tmp_path)
    with pytest.raises(PathRefused):
        proc.ingest("nul\0byte")
    with pytest.raises(InvalidArgument):
        proc.ingest(5)  # an integer is not accepted as a file descriptor
    with pytest.raises(InvalidArgument, match="binary"):
        proc.ingest(io.StringIO("text"), source="x")
    assert proc.list() == []


class Failing(io.RawIOBase):
    """A binary file whose disk fails after a block."""

    def __init__(self) -> None:
        self._left = 2

    def read(self, size: int = -1) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise OSError(5, "Input/output error")
        return b"x" * 1_000_000


def test_a_file_that_fails_while_being_read_is_a_typed_error_and_stores_nothing(proc: Process) -> None:
    with pytest.raises(FDStoreError, match="input/output error"):
        proc.ingest(Failing(), source="a bad disk")

    assert proc.list() == []


class OwnError(Exception):
    """An error of a program that uses fdstore."""


def fail(_: object) -> Any:
    raise OwnError


def test_an_error_of_the_caller_in_an_ingest_passes_and_leaves_no_staged_pages(
    proc: Process, execute: Any
) -> None:
    class Source(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(size) or fail(size)

    with pytest.raises(OwnError):
        proc.ingest(Source(b"x" * 3_000_000), source="mine")
    with pytest.raises(OwnError):
        proc.ingest(io.BytesIO(b"x" * 3_000_000), source="mine", progress=fail)

    assert execute("KEYS", "*:staging*") == []
    assert proc.create("after").fd == "fd:1"
