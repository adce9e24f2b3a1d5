"""A model is shown stored pictures, and what tools of users return beside text."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from fdstore import FDConfig, Toolset
from fdstore.client import Process, Store
from fdstore.testing import call, say
from fdstore.text.media_types import MAX_VIEWABLE_BYTES
from tests.elements import only
from tests.on_redis.running_agents import running


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    + chunk(b"IEND", b"")
)
"""A red pixel."""
WIDE = PNG[:16] + struct.pack(">II", 9000, 2) + PNG[24:]
LARGE = MAX_VIEWABLE_BYTES["image/png"] + 12_345
PDF = b"%PDF-1.4\n%%EOF\n"


def image(data: bytes = PNG, media_type: str = "image/png") -> dict[str, Any]:
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


@pytest.fixture
def tools(proc: Process) -> Toolset:
    return Toolset(proc, enabled=["read_fd"])


def test_a_preloaded_picture_is_shown_to_a_model_that_reads_it(store: Store, tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(PNG)

    with running(store, [call("read_fd", fd="fd:1"), say("A red pixel.")], tmp_path) as agents:
        root = agents.launch("What is on it?", preload=(str(tmp_path / "photo.png"),), tools=("read_fd",))
        assert agents.attempt(root.id) == "ended"
        first, second = agents.model.requests
        journal = agents.journal()

    assert 'source="photo.png" kind="bytes" media_type="image/png"' in first.system
    [result] = [block for block in second.messages[-1]["content"] if block["type"] == "tool_result"]
    shown, picture = result["content"]
    assert only(shown["text"])["size_bytes"] == str(len(PNG))
    assert picture == image()
    assert json.loads(journal[3])["content"] == result["content"]


@pytest.mark.parametrize(
    ("data", "media_type", "kind"),
    [
        (PNG, "image/png", "image"),
        (b"GIF89a\x10\0\x09\0...", "image/gif", "image"),
        (PDF, "application/pdf", "document"),
    ],
)
def test_pictures_and_pdfs_are_shown_as_blocks(
    tools: Toolset, proc: Process, data: bytes, media_type: str, kind: str
) -> None:
    proc.put("shown", data)

    result = tools.call("read_fd", {"fd": "name:shown"})

    assert (result.is_error, only(result.text)["media_type"]) == (False, media_type)
    block = result.content[1]
    assert isinstance(block, dict)
    assert (block["type"], block["source"]["media_type"]) == (kind, media_type)
    assert base64.b64decode(block["source"]["data"]) == data


@pytest.mark.parametrize(
    ("data", "media_type", "arguments", "error", "said"),
    [
        (b"\0\1", None, {}, "not_text", "application/octet-stream (2 bytes), not text"),
        (PNG, None, {"mode": "line"}, "not_text", "image/png"),
        (PNG, None, {"start": 2}, "not_text", "image/png"),
        (PNG, None, {"extract_to_new_fd": True}, "not_text", "image/png"),
        (
            PNG,
            "image/jpeg",
            {},
            "not_text",
            "its media type is image/jpeg, and its bytes are image/png",
        ),
        (WIDE, None, {}, "not_text", "it has 9000 x 2 pixels"),
        (PNG[:20], None, {}, "not_text", "it has no size"),
        (b"no picture", "image/webp", {}, "not_text", "its bytes are something else"),
        (
            PNG + bytes(LARGE - len(PNG)),
            None,
            {},
            "not_text",
            f"({LARGE} bytes), not text, and cannot be shown: it has {LARGE} bytes; models can look at "
            "3932160 at most",
        ),
    ],
)
def test_what_cannot_be_shown_is_a_typed_error_and_stays(
    tools: Toolset,
    proc: Process,
    data: bytes,
    media_type: str | None,
    arguments: dict[str, Any],
    error: str,
    said: str,
) -> None:
    made = proc.create(data, media_type=media_type)

    result = tools.call("read_fd", {"fd": made.fd, **arguments})

    assert (result.is_error, only(result.text)["type"]) == (True, error)
    assert said in result.text
    assert proc.read_bytes(made.fd) == data


@pytest.mark.parametrize("data", [b"\0\1", PNG, WIDE])
@pytest.mark.parametrize(
    "enabled",
    [("read_fd", "search_fd"), ("search_fd", "fd_to_file"), ("read_fd", "search_fd", "pipe"), ("search_fd",)],
)
def test_an_error_about_bytes_advises_the_tools_that_the_model_has(
    proc: Process, tmp_path: Path, data: bytes, enabled: tuple[str, ...]
) -> None:
    made = proc.create(data)
    tools = Toolset(proc, enabled=list(enabled), export_root=str(tmp_path), commands=["cat"])

    results = [tools.call("search_fd", {"fd": made.fd, "pattern": "x"})]
    if "read_fd" in enabled:
        results.append(tools.call("read_fd", {"fd": made.fd, "mode": "line"}))
        results.append(tools.call("read_fd", {"fd": made.fd}))

    for result in results:
        if not result.is_error:
            assert data == PNG
            continue
        assert only(result.text)["type"] == "not_text"
        said = only(result.text).message
        assert {name for name in ("read_fd", "fd_to_file", "pipe") if name in said} <= set(enabled)
        assert ("fd_to_file" in said) == ("fd_to_file" in enabled)
        assert ("pipe(" in said) == ("pipe" in enabled)
        assert "read its bytes" not in said
        if "cannot be shown" in said:
            assert "read_fd" not in said


def test_bytes_are_listed_exported_and_not_searched(proc: Process, tmp_path: Path) -> None:
    proc.put("a.png", PNG)
    tools = Toolset(proc, enabled=["search_fd", "list_fds", "fd_to_file"], export_root=str(tmp_path))

    listed = tools.call("list_fds", {}).text
    found = tools.call("search_fd", {"fd": "name:a.png", "pattern": "x"})
    saved = tools.call("fd_to_file", {"fd": "name:a.png", "file_path": "a.png"})

    assert f'name:a.png sealed kind=bytes media_type="image/png" size_bytes={len(PNG)}' in listed
    assert only(found.text)["type"] == "not_text"
    assert (saved.is_error, only(saved.text)["kind"]) == (False, "bytes")
    assert (tmp_path / "a.png").read_bytes() == PNG


def draw(what: str) -> Any:
    """Draw."""
    return {
        "blocks": [{"type": "text", "text": "long " * 5000}, image(), {"type": "text", "text": "short"}],
        "mcp": [{"type": "image", "data": image()["source"]["data"], "mimeType": "image/png"}],
        "bytes": PNG,
        "wrong": [image(PNG, "image/gif")],
        "wide": [image(WIDE)],
        "bmp": [image(b"BM", "image/bmp")],
        "documents": [
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": data}}
            for data in ("short", "long " * 5000)
        ],
        "frame": [{"type": "document", "source": {"type": "text", "data": "</fd_result>"}}],
        "empty": [{"type": "image", "source": {"type": "base64"}}],
        "invalid": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "!"}}],
        "audio": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}],
        "binary": bytes(range(256)) * 100,
    }[what]


@pytest.fixture
def drawing(proc: Process) -> Toolset:
    return Toolset(proc, enabled=["read_fd"], python=[draw])


def test_blocks_of_a_tool_keep_their_order_and_images_are_stored(drawing: Toolset, proc: Process) -> None:
    result = drawing.call("draw", {"what": "blocks"}, call_id="call_1")

    long, told, picture, short = result.content
    assert (picture, short) == (image(), {"type": "text", "text": "short"})
    assert only(long["text"])["fd"] == "fd:1"
    assert proc.read("fd:1", read_all=True).text == "long " * 5000
    assert only(told["text"])["media_type"] == "image/png"
    assert proc.read_bytes("fd:2") == PNG
    assert drawing.call("draw", {"what": "blocks"}, call_id="call_1") == result
    assert len(proc.list()) == 2


@pytest.mark.parametrize("what", ["mcp", "bytes"])
def test_images_are_converted_for_the_messages_api(drawing: Toolset, proc: Process, what: str) -> None:
    told, picture = drawing.call("draw", {"what": what}).content

    assert picture == image()
    assert only(told["text"])["fd"] == "fd:1"
    assert proc.read_bytes("fd:1") == PNG


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("wrong", "its media type is image/gif, and its bytes are image/png"),
        ("wide", "it has 9000 x 2 pixels; models can look at 8000 x 8000 at most"),
        ("bmp", "models cannot look at image/bmp"),
    ],
)
def test_pictures_that_the_api_would_refuse_are_stored_and_said(
    drawing: Toolset, proc: Process, what: str, problem: str
) -> None:
    told, said = drawing.call("draw", {"what": what}).content

    assert said == {"type": "text", "text": f"It cannot be shown: {problem}."}
    assert only(told["text"])["fd"] == "fd:1"
    assert proc.read_bytes("fd:1") == base64.b64decode(draw(what)[0]["source"]["data"])


def test_a_short_document_stays_one_and_a_long_one_is_stored(drawing: Toolset, proc: Process) -> None:
    short, long = drawing.call("draw", {"what": "documents"}).content

    assert short == draw("documents")[0]
    assert only(long["text"])["fd"] == "fd:1"
    assert proc.read("fd:1", read_all=True).text == "long " * 5000


@pytest.mark.parametrize("what", ["audio", "frame", "empty", "invalid"])
def test_other_blocks_that_the_api_would_refuse_are_shown_as_json(
    drawing: Toolset, proc: Process, what: str
) -> None:
    [block] = drawing.call("draw", {"what": what}).content
    shown = block["text"]

    assert block["type"] == "text"
    assert "</fd_result>" not in shown
    assert json.loads(shown.partition("\n")[2].rpartition("\n")[0] if what == "frame" else shown) == (
        json.loads(json.dumps(draw(what)[0]).replace("<", "&lt;"))
    )
    assert proc.list() == []


def test_long_bytes_of_a_tool_are_stored_as_they_are(drawing: Toolset, proc: Process) -> None:
    result = drawing.call("draw", {"what": "binary"})

    assert only(result.text)["kind"] == "bytes"
    assert proc.read_bytes("fd:1") == bytes(range(256)) * 100


def test_without_descriptors_images_are_passed_on_and_not_stored(store: Store, tmp_path: Path) -> None:
    with running(store, [call("draw", what="blocks"), say("Done.")], tmp_path) as agents:
        root = agents.launch(
            "Go.", python=(f"{__name__}:draw",), file_descriptor=FDConfig(enabled=False), tools=()
        )
        assert agents.attempt(root.id) == "ended"
        [result] = agents.model.requests[1].messages[-1]["content"]

    assert [block["type"] for block in result["content"]] == ["text", "image", "text"]
