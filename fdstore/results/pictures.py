"""Pictures and PDFs, as the Messages API takes them: stored bytes shown to a model as a content block."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, NamedTuple

from fdstore.elements.render import fd_content_of_bytes
from fdstore.errors import NotText
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolResult
from fdstore.store.contents.byte_reading import read_bytes
from fdstore.text.media_types import MAX_PIXELS, MAX_VIEWABLE_BYTES, PDF_TYPE, pixels_of, type_of_bytes
from fdstore.wire.operation import Operation


class Picture(NamedTuple):
    """The bytes of an image or a PDF."""

    media_type: str
    data: bytes

    def block(self) -> dict[str, Any]:
        """Return the content block of the Messages API."""
        return {
            "type": "image" if self.is_image else "document",
            "source": {"type": "base64", "media_type": self.media_type, "data": self.base64},
        }

    @property
    def is_image(self) -> bool:
        """Return whether it is an image, not a PDF."""
        return self.media_type.startswith("image/")

    @property
    def base64(self) -> str:
        """The bytes in Base64."""
        return b64encode(self.data).decode("ascii")

    def problem(self) -> str | None:
        """Return why the API would refuse it, or None."""
        most = MAX_VIEWABLE_BYTES.get(self.media_type)
        if most is None:
            return f"models cannot look at {self.media_type}"
        if (found := type_of_bytes(self.data)) != self.media_type:
            return f"its media type is {self.media_type}, and its bytes are {found or 'something else'}"
        if len(self.data) > most:
            return too_large(len(self.data), most)
        if self.media_type == PDF_TYPE:
            return None
        pixels = pixels_of(self.data)
        if pixels is None or not all(1 <= side <= MAX_PIXELS for side in pixels):
            size = "no size" if pixels is None else f"{pixels[0]} x {pixels[1]} pixels"
            return f"it has {size}; models can look at {MAX_PIXELS} x {MAX_PIXELS} at most"
        return None


def too_large(size_bytes: int, most: int) -> str:
    return f"it has {size_bytes} bytes; models can look at {most} at most"


def _not_shown(error: NotText, problem: str) -> NotText:
    return NotText(error.fd, error.media_type, error.size_bytes, problem)


def show(context: Context, fd: str, error: NotText) -> Operation[ToolResult]:
    """Return what a model sees of bytes that it reads: an element, and the picture or PDF. Raises `error`
    for other bytes; with its problem for a picture that the API would refuse."""
    most = MAX_VIEWABLE_BYTES.get(error.media_type)
    if most is None:
        raise error
    if error.size_bytes > most:
        raise _not_shown(error, too_large(error.size_bytes, most))
    info, data = yield from read_bytes(context.handle, fd, 0, most)
    picture = Picture(info.descriptor.media_type, data)
    if problem := picture.problem():
        raise _not_shown(error, problem)
    heading = fd_content_of_bytes(info.descriptor)
    return ToolResult([{"type": "text", "text": heading.text}, picture.block()], facts=heading.facts)
