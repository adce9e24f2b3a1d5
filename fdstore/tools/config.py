"""Configuration of an agent's descriptors: `[file_descriptor]` of a program file.

One frozen Struct serves the program file, `Toolset(config=...)` and the program stored with a process. It
validates itself on construction. The names of the built-in tools are here too, because they decide whether
descriptors are on.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import msgspec

from fdstore.errors import InvalidArgument
from fdstore.text.numbers import MAX_INTEGER
from fdstore.tools.tool_names import FD_TOOLS

SIZES = (
    "max_direct_output_chars",
    "default_page_size",
    "max_input_chars",
    "max_read_chars",
    "max_expand_chars",
)
FLAGS = ("page_user_input", "enable_references", "json_pretty_print")


def has_descriptors(config: FDConfig, tools: Collection[str]) -> bool:
    """Return whether an agent has descriptors: as `config` says, else if one of its tools works on them."""
    return config.enabled if config.enabled is not None else not FD_TOOLS.isdisjoint(tools)


def _size(description: str) -> msgspec.Meta:
    bounds = {"minimum": 1, "maximum": MAX_INTEGER}  # for the schema only: `FDConfig` checks them
    return msgspec.Meta(description=description, extra_json_schema=bounds)


def _flag(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


class FDConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes and switches of an agent's descriptors. Sizes are in characters.

    Raises `InvalidArgument` with the field's name for a flag that is not a bool or a size that is not an
    integer from 1 to 2**53.

    >>> FDConfig(default_page_size=2000).max_read_chars
    100000
    """

    enabled: Annotated[
        bool | None,
        msgspec.Meta(
            description="Whether large texts become descriptors. Default: if a tool on them is enabled.",
            examples=[True],
        ),
    ] = None
    max_direct_output_chars: Annotated[int, _size("A tool result longer than this becomes a descriptor.")] = (
        8000
    )
    default_page_size: Annotated[int, _size("Page size of descriptors created for the agent.")] = 4000
    max_input_chars: Annotated[
        int, _size("User input longer than this becomes a descriptor, if page_user_input is true.")
    ] = 8000
    page_user_input: Annotated[bool, _flag("Whether user input may become a descriptor.")] = True
    enable_references: Annotated[
        bool, _flag('Whether <ref id="NAME"> passages of answers are stored as descriptors.')
    ] = True
    json_pretty_print: Annotated[
        bool, _flag("Whether a long JSON result is stored indented, so that it pages by lines.")
    ] = False
    max_read_chars: Annotated[int, _size("Maximum result of one read.")] = 100_000
    max_expand_chars: Annotated[
        int, _size("Maximum total size of the texts that replace {{fd:3}} in one call.")
    ] = 1_000_000

    def __post_init__(self) -> None:
        if self.enabled is not None and type(self.enabled) is not bool:
            raise InvalidArgument("enabled", "must be true or false, or left out")
        for name in FLAGS:
            if type(getattr(self, name)) is not bool:
                raise InvalidArgument(name, "must be true or false")
        for name in SIZES:
            size = getattr(self, name)
            # not isinstance: True is an int
            if type(size) is not int or not 1 <= size <= MAX_INTEGER:
                raise InvalidArgument(name, f"must be an integer from 1 to {MAX_INTEGER}")
