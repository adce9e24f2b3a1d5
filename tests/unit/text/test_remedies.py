"""The commands that make text of what is none: those that this machine has are run."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from fdstore.text.media_types import SIGNED_TYPES, media_type_of, type_of_file
from fdstore.text.remedies import FILE, REMEDIES, remedy_of, wide_remedy
from tests.unit.files.packing import tar_of, zip_of
from tests.waiting import PATIENCE_S

TEXT = b"some text\n" * 50


def by_command(*command: str) -> Callable[[Path], bytes]:
    """Let a command pack the text."""

    def pack(folder: Path) -> bytes:
        return subprocess.run(
            command, input=TEXT, stdout=subprocess.PIPE, check=True, timeout=PATIENCE_S
        ).stdout

    return pack


def database(folder: Path) -> bytes:
    with closing(sqlite3.connect(folder / "made")) as made, made:
        made.execute("CREATE TABLE some_text (name)")
    return (folder / "made").read_bytes()


def compressed(data: bytes) -> bytes:
    """Return what `compress` makes of a few bytes: codes of nine bits, the lowest first."""
    bits = sum(byte << 9 * number for number, byte in enumerate(data))
    return b"\x1f\x9d\x90" + bits.to_bytes(-(-9 * len(data) // 8), "little")


SLIDE = {"[Content_Types].xml": b"<Types/>", "ppt/slides/slide1.xml": TEXT}
DOCUMENT = {"mimetype": b"application/x", "content.xml": TEXT}
SAMPLES: dict[str, Callable[[Path], bytes]] = {
    "application/gzip": lambda _: gzip.compress(TEXT),
    "application/x-compress": lambda _: compressed(b"text\n"),
    "application/x-bzip2": lambda _: bz2.compress(TEXT),
    "application/x-xz": lambda _: lzma.compress(TEXT),
    "application/zstd": by_command("zstd", "-c"),
    "application/x-lz4": by_command("lz4", "-c"),
    "application/x-brotli": by_command("brotli", "-c"),
    "application/zip": lambda _: zip_of({"a": TEXT}),
    "application/x-tar": lambda _: tar_of(("a", TEXT)),
    "application/vnd.sqlite3": database,
    "application/x-elf": lambda _: Path(sys.executable).resolve().read_bytes(),
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": lambda _: zip_of(SLIDE),
    "application/vnd.oasis.opendocument.spreadsheet": lambda _: zip_of(DOCUMENT),
    "application/vnd.oasis.opendocument.presentation": lambda _: zip_of(DOCUMENT),
}
"""Media type -> a file of it, made here."""

HERE = [name for name in SAMPLES if shutil.which(REMEDIES[name].command.split()[0])]


@pytest.mark.parametrize("media_type", HERE)
def test_the_command_of_a_kind_prints_text(tmp_path: Path, media_type: str) -> None:
    (tmp_path / "a file").write_bytes(SAMPLES[media_type](tmp_path))

    ran = subprocess.run(
        REMEDIES[media_type].on("a file"), shell=True, cwd=tmp_path, capture_output=True, timeout=PATIENCE_S
    )

    assert ran.returncode == 0, ran.stderr
    assert "text" in ran.stdout.decode("utf-8")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_text_in_a_wide_encoding_is_converted(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "wide").write_text("naïve\n", encoding)

    ran = subprocess.run(
        wide_remedy(encoding).on("wide"), shell=True, cwd=tmp_path, capture_output=True, timeout=PATIENCE_S
    )

    assert ran.stdout.decode("utf-8") == "naïve\n"


def test_every_command_has_its_file_and_its_package() -> None:
    for media_type, remedy in REMEDIES.items():
        assert re.fullmatch(r"(a|an) .+|gzip|bzip2|xz|Zstandard|LZ4|Brotli", remedy.what), media_type
        assert remedy.command.count(FILE) == bool(remedy.package), media_type


def test_every_kind_that_first_bytes_tell_has_a_row() -> None:
    assert set(REMEDIES) >= SIGNED_TYPES


@pytest.mark.parametrize("media_type", ["application/vnd.sqlite3", "application/x-xz", "application/gzip"])
def test_a_kind_is_told_by_its_first_bytes_whatever_its_name(tmp_path: Path, media_type: str) -> None:
    data = SAMPLES[media_type](tmp_path)

    assert type_of_file(data) == media_type
    assert remedy_of("x.dat", data) is REMEDIES[media_type]
    assert remedy_of("x.zip", data) is REMEDIES[media_type]


def test_a_name_tells_documents_and_a_contradicted_one_tells_nothing() -> None:
    docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

    assert media_type_of("bytes", "a.docx") == docx
    assert remedy_of("a.docx", zip_of({"x": b""})) is REMEDIES[docx]
    assert remedy_of("a.png", b"\xff\xfe\xfd") is None
    assert remedy_of("a", b"\xff\xfe\xfd") is None
