"""Exceptions that a tool raised, as a model sees them."""

from __future__ import annotations

import sys
from typing import Any

from fdstore.errors import FDStoreError
from fdstore.errors.description import describe_error, is_a, notes_of, read_or


def error_output(error: BaseException) -> Any:
    """Return the output of a tool that failed: a typed error of ours as it is, the content of the SDK's
    `ToolError` (a text or blocks) with its notes, else the description of the exception."""
    if is_a(error, FDStoreError):
        return error
    if is_tool_error(error):
        content = read_or(lambda: _content_of(error), None)
        return describe_error(error) if content is None else content
    return describe_error(error)


def _content_of(error: Any) -> Any:
    content, notes = error.content, notes_of(error)
    if isinstance(content, str):
        return "\n".join([content, *notes])
    return [*content, *({"type": "text", "text": note} for note in notes)]


def is_tool_error(error: BaseException) -> bool:
    """Return whether a tool raised the SDK's `ToolError`, by which it reports a failure to the model."""
    sdk = sys.modules.get("anthropic.lib.tools")  # not imported here: only then can it have been raised
    return sdk is not None and is_a(error, sdk.ToolError)
