"""Kinds of contents, and their media types: given, else by the file's name, else by the first bytes."""

from __future__ import annotations

import re
from functools import cache
from mimetypes import MimeTypes

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.records import TEXT_TYPE, ContentKind
from fdstore.text.utf8 import is_utf8

BYTES_TYPE = "application/octet-stream"
DEFAULT_TYPES: dict[ContentKind, str] = {"text": TEXT_TYPE, "bytes": BYTES_TYPE}

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The images that the Messages API takes."""
PDF_TYPE = "application/pdf"
MAX_VIEWABLE_BYTES = {**dict.fromkeys(IMAGE_TYPES, 3_932_160), PDF_TYPE: 19_500_000}
"""Media types of bytes that a model can look at, and the most bytes of one. The Messages API takes images of
5 MB in base64, and requests of 32 MB, of which the conversation needs a part."""

MAX_PIXELS = 8000
"""The most pixels of an image's width and height, a limit of the Messages API."""

MAX_MEDIA_TYPE_CHARS = 127

# RFC 6838, section 4.2; parameters as in RFC 9110, section 5.6.6
_NAME = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*"
_MEDIA_TYPE = re.compile(rf"{_NAME}/{_NAME}(?: ?; ?{_NAME}=(?:{_NAME}|\"[ !#-\[\]-~]*\"))*")

_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"%PDF-"), PDF_TYPE),
)
SIGNATURE_BYTES = 12
"""The number of first bytes that tell the types that `type_of_bytes` knows."""

_OTHER_SIGNATURES = (
    (re.compile(rb"\x1f\x8b\x08"), "application/gzip"),
    # the first block, or the end of an empty file: words of a text begin with BZh too
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)", re.DOTALL), "application/x-bzip2"),
    (re.compile(rb"\xfd7zXZ\0"), "application/x-xz"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "application/zstd"),
    (re.compile(rb"\x04\x22\x4d\x18"), "application/x-lz4"),
    (re.compile(rb"\x1f\x9d"), "application/x-compress"),
    (re.compile(rb"PK(?:\x03\x04|\x05\x06)"), "application/zip"),
    (re.compile(rb"7z\xbc\xaf\x27\x1c"), "application/x-7z-compressed"),
    (re.compile(rb"Rar!\x1a\x07"), "application/vnd.rar"),
    (re.compile(rb"SQLite format 3\0"), "application/vnd.sqlite3"),
    (re.compile(rb"\x7fELF"), "application/x-elf"),
    (re.compile(rb"\xca\xfe\xba\xbe\0\0\0[\x2d-\x60]", re.DOTALL), "application/java-vm"),
    (re.compile(rb"\0asm"), "application/wasm"),
    (re.compile(rb"PAR1\x15"), "application/vnd.apache.parquet"),
    (re.compile(rb"\x89HDF\r\n\x1a\n"), "application/x-hdf5"),
    (re.compile(rb"\xd4\xc3\xb2\xa1|\xa1\xb2\xc3\xd4"), "application/vnd.tcpdump.pcap"),
    (re.compile(rb"LPKSHHRH"), "application/x-journal"),
    (re.compile(rb"\xed\xab\xee\xdb"), "application/x-rpm"),
    (re.compile(rb"!<arch>\ndebian-"), "application/vnd.debian.binary-package"),
    (re.compile(rb"AT&TFORM....DJV", re.DOTALL), "image/vnd.djvu"),
)
SIGNED_TYPES = frozenset(media_type for _, media_type in (*_SIGNATURES, *_OTHER_SIGNATURES))
"""The types that `type_of_file` knows."""


def check_media_type(value: object) -> str:
    """Return a valid media type in lower case.

    >>> check_media_type("Image/PNG")
    'image/png'

    Raises `InvalidArgument`.
    """
    if isinstance(value, str) and len(value) <= MAX_MEDIA_TYPE_CHARS and _MEDIA_TYPE.fullmatch(value):
        name, semicolon, rest = value.partition(";")
        return name.lower() + semicolon + rest
    raise InvalidArgument("media_type", f"{quoted(value)} is not a media type; write one as image/png")


def media_type_of(kind: ContentKind, name: str = "", head: bytes = b"") -> str:
    """Return the media type of a content by the name of its file, else by its first bytes, else the default
    of its kind. A name that contradicts the kind does not count.

    >>> media_type_of("text", "notes.md"), media_type_of("bytes", "notes.md")
    ('text/markdown', 'application/octet-stream')
    """
    named = _types_by_name().guess_type(name.replace("\\", "/").rpartition("/")[2], strict=True)
    found = named[0] if named[1] is None else _ENCODINGS.get(named[1])
    if found and (kind == "bytes") != _is_text(found):
        return found
    return (type_of_bytes(head) if kind == "bytes" else None) or DEFAULT_TYPES[kind]


def type_of_bytes(head: bytes) -> str | None:
    """Return the media type of an image or a PDF by its first bytes, None for anything else.

    >>> type_of_bytes(b"GIF89a..."), type_of_bytes(b"plain")
    ('image/gif', None)
    """
    return next((found for signature, found in _SIGNATURES if signature.match(head)), None)


def type_of_file(head: bytes) -> str | None:
    r"""Return the media type of a file that is no text by its first bytes, None for one that is not known: of
    what `type_of_bytes` knows, and of kinds that no model looks at.

    >>> type_of_file(b"GIF89a..."), type_of_file(b"PK\x03\x04"), type_of_file(b"plain")
    ('image/gif', 'application/zip', None)
    """
    others = (found for signature, found in _OTHER_SIGNATURES if signature.match(head))
    return type_of_bytes(head) or next(others, None)


_END_MARKS = {"image/png": b"IEND\xaeB`\x82", "image/jpeg": b"\xff\xd9"}

TAIL_BYTES = 4096
"""The number of last bytes in which `is_cut` looks for the end of an image: some have other data after it."""


def is_cut(media_type: str, head: bytes, tail: bytes, size: int) -> bool:
    """Return whether the end of an image is missing, by its first `SIGNATURE_BYTES`, its last `TAIL_BYTES`
    and its size in bytes. What is damaged in the middle, and other types, are not recognized.

    >>> is_cut("image/gif", b"GIF89a", b"...;", 800), is_cut("image/jpeg", b"", b"...", 800)
    (False, True)
    """
    match media_type:
        case "image/png" | "image/jpeg":
            return _END_MARKS[media_type] not in tail
        case "image/gif":
            return not tail.rstrip(b"\0").endswith(b";")
        case "image/webp":
            return len(head) < 8 or size < int.from_bytes(head[4:8], "little") + 8
    return False


def is_binary(head: bytes) -> bool:
    r"""Return whether a file that begins so is bytes: an image or a PDF, or neither UTF-8 nor free of NUL,
    as archives are. Any other file is text, perhaps in an encoding that is not UTF-8.

    >>> is_binary(b"\x1f\x8b\x08\x00\x00"), is_binary(b"caf\xe9"), is_binary(b"a\x00b")
    (True, False, False)
    """
    return type_of_bytes(head) is not None or (b"\0" in head and not is_utf8(head, complete=False))


_ENCODINGS = {
    "gzip": "application/gzip",
    "bzip2": "application/x-bzip2",
    "xz": "application/x-xz",
    "br": "application/x-brotli",
    "compress": "application/x-compress",
}
"""Media types of what `mimetypes` calls encodings."""

_NEWER_TYPES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".jsonl": "application/jsonl",
    ".ndjson": "application/x-ndjson",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".webp": "image/webp",
    ".parquet": "application/vnd.apache.parquet",
    ".zst": "application/zstd",
    ".7z": "application/x-7z-compressed",
    ".rar": "application/vnd.rar",
    ".lz4": "application/x-lz4",
    ".sqlite": "application/vnd.sqlite3",
    ".sqlite3": "application/vnd.sqlite3",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odp": "application/vnd.oasis.opendocument.presentation",
    ".epub": "application/epub+zip",
    ".djvu": "image/vnd.djvu",
    ".h5": "application/x-hdf5",
    ".class": "application/java-vm",
    ".pcap": "application/vnd.tcpdump.pcap",
    ".deb": "application/vnd.debian.binary-package",
    ".rpm": "application/x-rpm",
}
"""Types that some versions of Python do not know, or know under an older name."""

_TEXT_APPLICATIONS = re.compile(
    r"application/(?:json|jsonl|x-ndjson|xml|javascript|x-sh|x-tex|x-latex|x-httpd-php|sql|toml|yaml|.*\+(?:json|xml))"
    r"|image/svg\+xml|message/rfc822"
)


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or _TEXT_APPLICATIONS.fullmatch(media_type) is not None


@cache
def _types_by_name() -> MimeTypes:
    types = MimeTypes()  # those of Python alone, not of the system: the same on every machine
    for extension, media_type in _NEWER_TYPES.items():
        types.add_type(media_type, extension)
    return types


def pixels_of(data: bytes) -> tuple[int, int] | None:
    """Return the width and height of an image by its header; None if it has none that is known.

    >>> pixels_of(b"GIF89a" + bytes([16, 0, 9, 0]))
    (16, 9)
    """
    match type_of_bytes(data):
        case "image/png" if data[12:16] == b"IHDR" and len(data) >= 24:
            return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        case "image/gif" if len(data) >= 10:
            return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
        case "image/webp" if len(data) >= 30:
            return _pixels_of_webp(data)
        case "image/jpeg":
            return _pixels_of_jpeg(data)
    return None


def _pixels_of_webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = (int.from_bytes(data[at : at + 2], "little") for at in (26, 28))
            return width & 0x3FFF, height & 0x3FFF
    return None


def _pixels_of_jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker, size = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a start of frame
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        if size < 2:
            return None
        at += 2 + size
    return None
