"""The commands that make text of what is none: those that this machine has are run."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
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
from tests.thorough import sample
from tests.unit.files.documents_made import (
    docx_of,
    epub_of,
    odp_of,
    ods_of,
    ods_row,
    ods_sheet,
    odt_of,
    paragraph,
    pdf_of,
    pptx_of,
    xlsx_of,
)
from tests.unit.files.packing import tar_of, zip_of
from tests.unit.text.samples.binaries import class_of, hdf5_of, journal_of, pcap_of, wasm_of
from tests.unit.text.samples.old_office import doc_of, ppt_of, xls_of
from tests.unit.text.samples.packages import deb_of, rar_of, rpm_of
from tests.unit.text.samples.pictures import djvu_of, gif_of, jpeg_of, png_of, webp_of
from tests.waiting import PATIENCE_S

WORDS = "some text"
NAME = "some_text"
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


def archive_of_7z(folder: Path) -> bytes:
    (folder / "packed").write_bytes(TEXT)
    return by_command("bsdtar", "--format", "7zip", "-cf", "-", "-C", str(folder), "packed")(folder)


def compressed(data: bytes) -> bytes:
    """Return what `compress` makes of a few bytes: codes of nine bits, the lowest first."""
    bits = sum(byte << 9 * number for number, byte in enumerate(data))
    return b"\x1f\x9d\x90" + bits.to_bytes(-(-9 * len(data) // 8), "little")


OFFICE = "application/vnd.openxmlformats-officedocument."
OPEN = "application/vnd.oasis.opendocument."
SAMPLES: dict[str, Callable[[Path], bytes]] = {
    "application/gzip": lambda _: gzip.compress(TEXT),
    "application/x-compress": lambda _: compressed(TEXT[:10]),
    "application/x-bzip2": lambda _: bz2.compress(TEXT),
    "application/x-xz": lambda _: lzma.compress(TEXT),
    "application/zstd": by_command("zstd", "-c"),
    "application/x-lz4": by_command("lz4", "-c"),
    "application/x-brotli": by_command("brotli", "-c"),
    "application/zip": lambda _: zip_of({"a": TEXT}),
    "application/x-tar": lambda _: tar_of(("a", TEXT)),
    "application/x-7z-compressed": archive_of_7z,
    "application/vnd.rar": lambda _: rar_of("a", TEXT),
    "application/vnd.sqlite3": database,
    "application/pdf": lambda _: pdf_of(WORDS),
    "application/msword": lambda _: doc_of(WORDS),
    "application/vnd.ms-excel": lambda _: xls_of(WORDS),
    "application/vnd.ms-powerpoint": lambda _: ppt_of(WORDS),
    f"{OFFICE}wordprocessingml.document": lambda _: docx_of(paragraph(WORDS)),
    f"{OFFICE}spreadsheetml.sheet": lambda _: xlsx_of({"Sheet": [[WORDS]]}),
    f"{OFFICE}presentationml.presentation": lambda _: pptx_of([WORDS]),
    f"{OPEN}text": lambda _: odt_of(WORDS),
    f"{OPEN}spreadsheet": lambda _: ods_of(ods_sheet("Sheet", ods_row(WORDS))),
    f"{OPEN}presentation": lambda _: odp_of(WORDS),
    "application/epub+zip": lambda _: epub_of(f"<p>{WORDS}</p>"),
    "image/vnd.djvu": lambda _: djvu_of(WORDS),
    "image/png": lambda _: png_of(WORDS),
    "image/jpeg": lambda _: jpeg_of(WORDS),
    "image/webp": lambda _: webp_of(WORDS),
    "image/gif": lambda _: gif_of(WORDS),
    "application/x-elf": lambda _: Path(sys.executable).resolve().read_bytes(),
    "application/java-vm": lambda _: class_of(NAME),
    "application/wasm": lambda _: wasm_of(NAME),
    "application/x-hdf5": lambda _: hdf5_of(NAME),
    "application/vnd.tcpdump.pcap": lambda _: pcap_of(NAME),
    "application/x-journal": lambda _: journal_of(WORDS),
    "application/x-rpm": lambda _: rpm_of("sample", WORDS),
    "application/vnd.debian.binary-package": lambda _: deb_of(f"./{NAME}", TEXT),
}
"""Media type -> a file of it, made here."""

FOUND = {
    media_type: re.compile(r"some[ _]text" if media_type != "application/x-elf" else r" \.text ")
    for media_type in SAMPLES
}
"""Media type -> what its command prints of the file."""


def is_here(media_type: str) -> bool:
    return shutil.which(REMEDIES[media_type].command.split()[0]) is not None


HERE = [media_type for media_type in SAMPLES if is_here(media_type)]


@pytest.mark.parametrize("media_type", sample(HERE, 8, "more kinds"))
def test_the_command_of_a_kind_prints_the_text_of_a_file(tmp_path: Path, media_type: str) -> None:
    name = f"a file{REMEDIES[media_type].suffix}"
    (tmp_path / name).write_bytes(SAMPLES[media_type](tmp_path))

    ran = subprocess.run(
        REMEDIES[media_type].on(name),
        shell=True,
        cwd=tmp_path,
        env=dict(os.environ, JAVA_TOOL_OPTIONS="-XX:-UsePerfData"),  # which Java leaves in /tmp
        capture_output=True,
        timeout=PATIENCE_S,
    )

    assert ran.returncode == 0, ran.stderr
    assert FOUND[media_type].search(ran.stdout.decode("utf-8"))


@pytest.mark.parametrize("media_type", sorted(SIGNED_TYPES.intersection(HERE)))
def test_the_first_bytes_of_a_file_tell_its_kind(tmp_path: Path, media_type: str) -> None:
    assert type_of_file(SAMPLES[media_type](tmp_path)) == media_type


def test_every_kind_that_has_a_command_has_a_file() -> None:
    assert set(SAMPLES) == {media_type for media_type, remedy in REMEDIES.items() if remedy.command}


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
