"""The commands that make text of what is none, by media type: each with the package of Debian that has it.

Where a program says that something cannot be read as text, it names the command, so that nobody has to look
for one. Kinds without a command only have a name.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from fdstore.text.media_types import IMAGE_TYPES, SIGNED_TYPES, media_type_of, type_of_file

FILE = "{}"
"""Where a command has the file."""


class Remedy(NamedTuple):
    """The name of a kind of bytes, the command that prints its text, the package of Debian that has it, and
    the suffix that a file's name must have for the command. Without a command there is none that is commonly
    installed."""

    what: str
    command: str = ""
    package: str = ""
    suffix: str = ""

    def on(self, file: str) -> str:
        """Return the command for this file; - is standard input, which has to become a file first. So has a
        file that lacks the suffix.

        >>> REMEDIES["application/gzip"].on("a b.gz"), REMEDIES["application/java-vm"].on("a.dat")
        ("gzip -dc 'a b.gz'", 'javap -c -p FILE.class')
        """
        is_taken = file != "-" and file.endswith(self.suffix)
        return self.command.replace(FILE, shlex.quote(file) if is_taken else f"FILE{self.suffix}")


_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."

REMEDIES: dict[str, Remedy] = {
    "application/gzip": Remedy("gzip", "gzip -dc {}", "gzip"),
    "application/x-compress": Remedy("a file of compress", "gzip -dc {}", "gzip"),
    "application/x-bzip2": Remedy("bzip2", "bzip2 -dc {}", "bzip2"),
    "application/x-xz": Remedy("xz", "xz -dc {}", "xz-utils"),
    "application/zstd": Remedy("Zstandard", "zstd -dc {}", "zstd"),
    "application/x-lz4": Remedy("LZ4", "lz4 -dc {}", "lz4"),
    "application/x-brotli": Remedy("Brotli", "brotli -dc {}", "brotli"),
    "application/zip": Remedy("a zip archive", "unzip -p {}", "unzip"),
    "application/x-tar": Remedy("a tar archive", "tar -xOf {}", "tar"),
    "application/x-7z-compressed": Remedy("a 7-Zip archive", "bsdtar -xOf {}", "libarchive-tools"),
    "application/vnd.rar": Remedy("a RAR archive", "bsdtar -xOf {}", "libarchive-tools"),
    "application/vnd.sqlite3": Remedy("a SQLite database", "sqlite3 {} .dump", "sqlite3"),
    "application/pdf": Remedy("a PDF", "pdftotext -layout {} -", "poppler-utils"),
    "application/msword": Remedy("a Word document", "catdoc {}", "catdoc"),
    "application/vnd.ms-excel": Remedy("an Excel workbook", "xls2csv {}", "catdoc"),
    "application/vnd.ms-powerpoint": Remedy("a PowerPoint presentation", "catppt {}", "catdoc"),
    f"{_OFFICE}wordprocessingml.document": Remedy("a Word document", "pandoc -f docx -t plain {}", "pandoc"),
    f"{_OFFICE}spreadsheetml.sheet": Remedy("an Excel workbook", "xlsx2csv -a {}", "xlsx2csv"),
    f"{_OFFICE}presentationml.presentation": Remedy(
        "a PowerPoint presentation", "unzip -p {} 'ppt/slides/*.xml'", "unzip"
    ),
    f"{_OPEN}text": Remedy("an OpenDocument text", "pandoc -f odt -t plain {}", "pandoc"),
    f"{_OPEN}spreadsheet": Remedy("an OpenDocument spreadsheet", "unzip -p {} content.xml", "unzip"),
    f"{_OPEN}presentation": Remedy("an OpenDocument presentation", "unzip -p {} content.xml", "unzip"),
    "application/epub+zip": Remedy("an EPUB book", "pandoc -f epub -t plain {}", "pandoc"),
    "image/vnd.djvu": Remedy("a DjVu document", "djvutxt {}", "djvulibre-bin"),
    "image/png": Remedy("an image", "tesseract {} -", "tesseract-ocr"),
    "image/jpeg": Remedy("an image", "tesseract {} -", "tesseract-ocr"),
    "image/webp": Remedy("an image", "tesseract {} -", "tesseract-ocr"),
    "image/gif": Remedy("an image", "tesseract {} -", "tesseract-ocr"),
    "application/x-elf": Remedy("an ELF program", "readelf -aW {}", "binutils"),
    "application/java-vm": Remedy("a class of Java", "javap -c -p {}", "default-jdk-headless", ".class"),
    "application/wasm": Remedy("a WebAssembly module", "wasm2wat {}", "wabt"),
    "application/x-hdf5": Remedy("an HDF5 file", "h5dump {}", "hdf5-tools"),
    "application/vnd.tcpdump.pcap": Remedy("a capture of packets", "tcpdump -nr {}", "tcpdump"),
    "application/x-journal": Remedy("a journal of systemd", "journalctl --file {}", "systemd"),
    "application/x-rpm": Remedy("an RPM package", "rpm -qpil {}", "rpm"),
    "application/vnd.debian.binary-package": Remedy("a Debian package", "dpkg-deb -c {}", "dpkg"),
    "application/vnd.apache.parquet": Remedy("a Parquet table"),
}
"""Media type -> what it is, and the command."""


def remedy_of(name: str, head: bytes) -> Remedy | None:
    r"""Return what bytes of this name are that begin so; None for a kind that is not known. A name does not
    count if the first bytes would say the same.

    >>> remedy_of("a.docx", b"PK\x03\x04").what, remedy_of("b.zip", b"\xff")
    ('a Word document', None)
    """
    by_name = media_type_of("bytes", name)
    found = type_of_file(head) if by_name in SIGNED_TYPES or by_name not in REMEDIES else by_name
    return REMEDIES.get(found or "")


def remedy_of_type(media_type: str) -> Remedy | None:
    """Return what stored bytes of this type are, if a command makes text of them; None for images too, which
    models see.

    >>> remedy_of_type("application/vnd.sqlite3").command, remedy_of_type("image/png")
    ('sqlite3 {} .dump', None)
    """
    found = REMEDIES.get(media_type)
    return found if found is not None and found.command and media_type not in IMAGE_TYPES else None


def wide_remedy(encoding: str) -> Remedy:
    """Return the remedy for a text in UTF-16 or UTF-32."""
    name = encoding.replace("-le", "le").replace("-be", "be")  # as iconv has them
    return Remedy(encoding.upper(), f"iconv -f {name} -t utf-8 {FILE}", "libc-bin")
