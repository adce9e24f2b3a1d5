"""Kinds of contents, and their media types: given, else by the file's name, else by the first bytes."""

from __future__ import annotations

import re
from functools import cache
from mimetypes import MimeTypes

from fdstore.errors import InvalidArgument, quoted
from fdstore.records import TEXT_TYPE, ContentKind

BYTES_TYPE = "application/octet-stream"
DEFAULT_TYPES: dict[ContentKind, str] = {"text": TEXT_TYPE, "bytes": BYTES_TYPE}

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The images that the Messages API takes."""
PDF_TYPE = "application/pdf"
VIEWABLE_TYPES = frozenset((*IMAGE_TYPES, PDF_TYPE))
"""Media types of bytes that a model can look at."""

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
"""How many first bytes tell the types that `type_of_bytes` knows."""


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
    ".webp": "image/webp",
    ".parquet": "application/vnd.apache.parquet",
    ".zst": "application/zstd",
    ".7z": "application/x-7z-compressed",
}
"""Types that some versions of Python do not know."""

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
