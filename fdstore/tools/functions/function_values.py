"""Call a function of the user's for code: with its value instead of a text for a model.

The outcome is stored under the id of the call, so it is what `json_text` writes: what it cannot is refused,
for the first call and for a repeated one alike. A large one becomes a descriptor, which code gets as a text.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.errors.description import describe_error, is_a
from fdstore.model.msgspec_types import prepare
from fdstore.programs.interpreter.events import Exceptions
from fdstore.results.json_text import json_text, json_value
from fdstore.tools.functions.python_tool import PythonTool, Raised, result_of

MAX_VALUE_CHARS = 1_000_000
"""A result whose JSON is longer becomes a descriptor."""


class FunctionOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a call: a value, the id of a descriptor of a large one, or an error, which is an
    exception of this `kind` in code."""

    value: Any = None
    fd: str = ""
    error: str = ""
    kind: Exceptions = "ValueError"

    @property
    def large_text(self) -> str | None:
        """The text to store as a descriptor: a large text itself, another large value as JSON; else None."""
        if isinstance(self.value, str):
            return self.value if len(self.value) > MAX_VALUE_CHARS else None
        written = json_text(self.value)
        return written if len(written) > MAX_VALUE_CHARS else None

    @classmethod
    def decode(cls, stored: str) -> FunctionOutcome:
        """Return the outcome that `json_text` wrote. Raises `ValueError`, `RecursionError`."""
        return msgspec.convert(json.loads(stored), cls)


prepare(FunctionOutcome)


def call_for_value(tool: PythonTool, values: dict[str, Any]) -> FunctionOutcome:
    """Call a function. What it raises is an error of the outcome."""
    result = result_of(tool, values, _value_of)
    if not isinstance(result, Raised):
        return result
    error = result.error
    return FunctionOutcome(
        error=f"{error.type}: {error}" if is_a(error, FDStoreError) else describe_error(error)
    )


def _value_of(result: Any) -> FunctionOutcome:
    try:
        return FunctionOutcome(value=json_value(result))
    except InvalidArgument as error:
        return FunctionOutcome(error=f"its result cannot be passed to code: {error}")
