"""Downloads and pictures: exact bytes, ranges, and nothing that a browser would run."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from fdstore.client import Process
from fdstore.inspector.web import descriptor_download
from tests import cold_contents
from tests.on_redis.inspector.inspected import Get

FD = "/process/triage/fd/"


def png(lost: int = 0) -> bytes:
    """A picture, whose pixels end too soon if some of their bytes are lost."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = zlib.compress(b"\0\xff\0\0" * 1)
    pixels = pixels[: len(pixels) - lost]
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_a_download_is_the_exact_content(get: Get, proc: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptor_download, "PIECE_BYTES", 1000)
    text = "häß\r\n\x00\u202e" * 900
    proc.create(text, source="logs/build.log")
    proc.create(bytes(range(256)) * 300)
    proc.create("")

    as_text, as_bytes, empty = (get(f"{FD}{n}/download") for n in (1, 2, 3))

    assert as_text.content == text.encode()
    assert as_text.headers["content-type"] == "text/plain; charset=utf-8"
    assert as_text.headers["content-disposition"].startswith('attachment; filename="build.log"')
    assert int(as_text.headers["content-length"]) == len(text.encode())
    assert as_bytes.content == bytes(range(256)) * 300
    assert as_bytes.headers["content-type"] == "application/octet-stream"
    assert empty.content == b""


def test_the_name_of_a_download_is_whole_and_has_a_form_in_ascii(get: Get, proc: Process) -> None:
    proc.put('notes/größe "2".md', "text")

    sent = get(f"{FD}name/download?key=notes/größe%20%222%22.md")

    plain, whole = 'filename="gr__e _2_.md"', "filename*=UTF-8''gr%C3%B6%C3%9Fe%20%222%22.md"
    assert sent.headers["content-disposition"] == f"attachment; {plain}; {whole}"


def test_a_range_past_the_end_is_416_and_a_changed_content_is_sent_whole(get: Get, proc: Process) -> None:
    proc.put("a.txt", "one")
    path = f"{FD}name/download?key=a.txt"
    tag = get(path).headers["etag"]

    past = get(path, headers={"Range": "bytes=9-"})
    same = get(path, headers={"Range": "bytes=1-", "If-Range": tag})
    known = get(path, headers={"If-None-Match": tag})
    proc.put("a.txt", "two")
    changed = get(path, headers={"Range": "bytes=1-", "If-Range": tag})

    assert (past.status_code, past.headers["content-range"]) == (416, "bytes */3")
    assert (same.status_code, same.content) == (206, b"ne")
    assert same.headers["content-range"] == "bytes 1-2/3"
    assert known.status_code == 304
    assert (changed.status_code, changed.content) == (200, b"two")


def test_only_pictures_and_pdfs_are_shown_by_what_they_are(get: Get, proc: Process) -> None:
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
    proc.create(png(), media_type="image/png")
    proc.create(b"%PDF-1.4 ...", media_type="application/pdf")
    proc.create(svg, media_type="image/png")
    proc.create("<script>alert(1)</script>", media_type="text/html")
    proc.create(png(), media_type="text/html")

    shown = [get(f"{FD}{number}/picture") for number in range(1, 6)]
    files = [get(f"{FD}{number}/download") for number in range(1, 6)]

    assert [(each.status_code, each.headers["content-type"]) for each in shown] == [
        (200, "image/png"), (200, "application/pdf"), (415, "text/plain; charset=utf-8"),
        (415, "text/plain; charset=utf-8"), (200, "image/png"),
    ]  # fmt: skip
    for each in (*shown, *files):
        assert each.headers["x-content-type-options"] == "nosniff"
        assert "html" not in each.headers["content-type"]
    for each in (shown[0], shown[1], *files):
        assert each.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert all(each.headers["content-disposition"].startswith("attachment") for each in files)


def test_a_picture_is_in_the_page_and_an_svg_is_text(get: Get, proc: Process) -> None:
    proc.create(png(), media_type="image/png", source="chart.png")
    proc.create("<svg onload=alert(1)></svg>", media_type="image/svg+xml")

    picture, svg = get(f"{FD}1", f"{FD}2")

    assert f'<img src="{FD}1/picture"' in picture.text
    assert "<img" not in svg.text
    assert "&lt;svg onload" in svg.text


@pytest.mark.parametrize(
    "data",
    [
        png()[:45],
        png(lost=1),
        png(lost=9),
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0" * 3000,
        b"RIFF\x40\0\0\0WEBPVP8 ",
        b"",
    ],
)
def test_a_picture_without_its_end_is_said_to_be_cut(get: Get, proc: Process, data: bytes) -> None:
    kinds = {b"\xff": "image/jpeg", b"R": "image/webp"}
    proc.create(data, media_type=kinds.get(data[:1], "image/png"))

    assert "This picture is cut or damaged" in get(f"{FD}1").text


def test_whole_pictures_are_not_said_to_be_cut(get: Get, proc: Process) -> None:
    jpeg = b"\xff\xd8\xff\xe0" + bytes(5000) + b"\xff\xd9"
    proc.create(png(), media_type="image/png")
    proc.create(jpeg + b"more data", media_type="image/jpeg")
    proc.create(b"GIF89a" + bytes(5000) + b";", media_type="image/gif")
    proc.create(b"RIFF\x0c\0\0\0WEBPVP8 \0\0\0\0", media_type="image/webp")
    proc.create(b"%PDF-1.7", media_type="application/pdf")

    # what follows the end of a picture
    proc.create(png() + bytes(9000), media_type="image/png")
    proc.create(jpeg + b"\0film" * 3000, media_type="image/jpeg")

    for page in get(*(f"{FD}{number}" for number in range(1, 8))):
        assert "cut or damaged" not in page.text


def test_the_end_of_a_picture_inside_a_jpeg_is_not_its_own(get: Get, proc: Process) -> None:
    small = b"\xff\xd8\xff\xd9"
    pixels = b"\xff\xda\x00\x02" + b"pixels\xff\x00" * 900
    proc.create(b"\xff\xd8\xff\xe1\x00\x06" + small + pixels, media_type="image/jpeg")

    assert "cut or damaged" in get(f"{FD}1").text


def test_a_download_of_a_content_whose_object_store_is_away_says_so(
    get: Get, proc: Process, tmp_path: Path
) -> None:
    pytest.importorskip("obstore")
    proc.create("some text\n" * 30_000)
    cold_contents.use_cold(proc.store, f"file://{tmp_path / 'place'}")
    assert cold_contents.turn_cold(proc.store) == 1
    (tmp_path / "place").rename(tmp_path / "away")

    response = get(f"{FD}1/download")

    assert response.status_code == 503
    assert "is it mounted?" in response.text
