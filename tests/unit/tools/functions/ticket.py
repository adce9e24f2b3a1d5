"""A pydantic model as the type of a parameter, and the parameters as the schema of a function has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pydantic

from fdstore.tools.functions.python_tool import python_tool


class Ticket(pydantic.BaseModel):
    """A ticket of the tracker."""

    title: str
    votes: int = pydantic.Field(0, ge=0, description="How many want it.")
    kind: Literal["bug", "wish"] = "bug"
    parts: list[Ticket] = []


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = python_tool(function).definition()["input_schema"]["properties"]
    return found
