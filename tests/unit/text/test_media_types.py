"""Media types are given, or told by a file's name or its first bytes."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.errors import InvalidArgument
from fdstore.text.media_types import check_media_type, media_type_of


@pytest.mark.parametrize(
    ("kind", "name", "head", "expected"),
    [
        ("text", "", b"", "text/plain"),
        ("text", "build.log", b"", "text/plain"),
        ("text", "notes/plan.md", b"", "text/markdown"),
        ("text", "a.json", b"", "application/json"),
        ("text", "https://example.org/a/page.html", b"", "text/html"),
        ("text", r"C:\notes\table.csv", b"", "text/csv"),
        ("text", "drawing.svg", b"", "image/svg+xml"),
        ("text", "photo.png", b"", "text/plain"),
        ("bytes", "photo.png", b"", "image/png"),
        ("bytes", "archive.tar.gz", b"", "application/gzip"),
        ("bytes", "photo", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("bytes", "notes.md", b"%PDF-1.7", "application/pdf"),
        ("bytes", "x", b"RIFF\x00\n\x00\x00WEBPVP8 ", "image/webp"),
        ("bytes", "x", b"", "application/octet-stream"),
    ],
)
def test_the_name_decides_then_the_first_bytes(kind: Any, name: str, head: bytes, expected: str) -> None:
    assert media_type_of(kind, name, head) == expected


@pytest.mark.parametrize(
    "value", ["image/png", "application/vnd.api+json", "text/plain; charset=utf-8", 'a/b;c="d e"']
)
def test_media_types_are_accepted(value: str) -> None:
    assert check_media_type(value) == value


@pytest.mark.parametrize(
    "value",
    [
        *("", "png", "image/", "/png", "image/png\n", "image /png", "a/b;c", "a/" + "b" * 126, "ä/b"),
        *(None, 3, b"a/b"),
    ],
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match="media_type"):
        check_media_type(value)
