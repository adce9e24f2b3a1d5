"""Results of tools as content blocks of MCP."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import mcp_types as types

from fdstore.elements.render import fd_error
from fdstore.errors import FDStoreError
from fdstore.results.content_blocks import picture_in
from fdstore.results.tool_outcome import ToolResult, element_result
from fdstore.results.wrapping import block_text, escape_surrogates, to_text


def error_result(error: FDStoreError, fd: str | None = None) -> types.CallToolResult:
    """Return an error of ours as a result, which the model sees and can correct."""
    return call_result(element_result(fd_error(error, fd), is_error=True))


def call_result(result: ToolResult, uri: str = "fdstore:") -> types.CallToolResult:
    """Return a result with content alone: hosts would show structured content instead of the text. `uri`
    names what a PDF in it was read from."""
    content = result.content
    blocks = [content] if isinstance(content, str) else content
    return types.CallToolResult(content=content_of(blocks, uri), is_error=result.is_error)


def content_of(blocks: Sequence[Any], uri: str = "fdstore:") -> list[types.ContentBlock]:
    """Return blocks of the Messages API or of MCP as those of MCP. What neither has is shown as JSON."""
    return [_block(block, uri) for block in blocks]


def _block(block: Any, uri: str) -> types.ContentBlock:
    if (text := block_text(block)) is not None:
        return _text(text)
    if (picture := picture_in(block)) is not None:
        data = base64.b64encode(picture.data).decode("ascii")
        if picture.media_type.startswith("image/"):
            return types.ImageContent(data=data, mime_type=picture.media_type)
        blob = types.BlobResourceContents(uri=uri, mime_type=picture.media_type, blob=data)
        return types.EmbeddedResource(resource=blob)
    return _text(to_text(block))


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=escape_surrogates(text))
