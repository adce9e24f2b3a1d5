"""Exceptions that a tool raised, as a model sees them."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from fdstore.errors import FDStoreError


def error_output(error: BaseException) -> Any:
    """Return the output of a tool that failed: a typed error of ours as it is, the content of the SDK's
    `ToolError` (a text or blocks), else the type and text of the exception."""
    if isinstance(error, FDStoreError):
        return error
    if is_tool_error(error):
        content = error.content  # type: ignore[attr-defined]
        return content if isinstance(content, str) else list(content)
    return describe_error(error)


def is_tool_error(error: BaseException) -> bool:
    """Return whether a tool raised the SDK's `ToolError`, by which it reports a failure to the model."""
    sdk = sys.modules.get("anthropic.lib.tools")  # not imported here: only then can it have been raised
    return sdk is not None and isinstance(error, sdk.ToolError)


def describe_error(error: BaseException) -> str:
    """Return the type and text of an exception, whose `__str__` may fail too."""
    name, message = type(error).__name__, ""
    with suppress(Exception):
        message = str(error)
    return f"{name}: {message}" if message else name
