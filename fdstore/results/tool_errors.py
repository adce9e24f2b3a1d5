"""Exceptions that a tool raised, as a model sees them."""

from __future__ import annotations

import sys
from typing import Any

from fdstore.errors import FDStoreError
from fdstore.errors.description import describe_error, notes_of


def error_output(error: BaseException) -> Any:
    """Return the output of a tool that failed: a typed error of ours as it is, the content of the SDK's
    `ToolError` (a text or blocks) with its notes, else the description of the exception."""
    if isinstance(error, FDStoreError):
        return error
    if is_tool_error(error):
        content, notes = error.content, notes_of(error)  # type: ignore[attr-defined]
        if isinstance(content, str):
            return "\n".join([content, *notes])
        return [*content, *({"type": "text", "text": note} for note in notes)]
    return describe_error(error)


def is_tool_error(error: BaseException) -> bool:
    """Return whether a tool raised the SDK's `ToolError`, by which it reports a failure to the model."""
    sdk = sys.modules.get("anthropic.lib.tools")  # not imported here: only then can it have been raised
    return sdk is not None and isinstance(error, sdk.ToolError)
