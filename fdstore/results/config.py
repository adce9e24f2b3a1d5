"""Configuration of an agent's descriptors: `[file_descriptor]` of a program file.

`FDSection` is what a program file can say. `FDConfig`, which adds what only Python can, serves
`Toolset(config=...)` and the program stored with a process. Both validate themselves on construction.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.fields import about
from fdstore.results.tool_policy import THRESHOLDS, ToolPolicy, check_size
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.paging import DEFAULT_PAGE_SIZE

SIZES = {
    "default_page_size": 1,
    "max_input_chars": 1,
    "max_read_chars": 1,
    "max_expand_chars": 1,
    "whole_chars": 0,
}
"""The sizes, with the least value of each."""
DIRECT_CHARS = 8000
"""The value of `max_direct_output_chars` where neither it nor `max_direct_output_tokens` is set."""
FLAGS = ("page_user_input", "enable_references", "json_pretty_print", "hold_back_tools")


def _size(description: str, minimum: int = 1, example: int | None = None) -> msgspec.Meta:
    # the bounds are for the schema only: `FDConfig` checks them
    return about(description, example, minimum=minimum, maximum=MAX_INTEGER)


class FDSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes and switches of an agent's descriptors. Sizes are in characters."""

    enabled: Annotated[
        bool | None,
        about("Whether large texts become descriptors. Default: if a tool on them is enabled.", True),
    ] = None
    max_direct_output_chars: Annotated[
        int | None,
        _size(
            "A tool result longer than this becomes a descriptor."
            f" Default: {DIRECT_CHARS}, unless max_direct_output_tokens is given.",
            example=DIRECT_CHARS,
        ),
    ] = None
    whole_chars: Annotated[
        int,
        _size(
            "A text that becomes a descriptor is shown whole, with its id, if it is not longer than this;"
            " 0: never.",
            minimum=0,
        ),
    ] = 0
    default_page_size: Annotated[int, _size("Page size of descriptors created for the agent.")] = (
        DEFAULT_PAGE_SIZE
    )
    max_input_chars: Annotated[
        int, _size("User input longer than this becomes a descriptor, if page_user_input is true.")
    ] = 8000
    page_user_input: Annotated[bool, about("Whether user input may become a descriptor.")] = True
    enable_references: Annotated[
        bool, about('Whether <ref id="NAME"> passages of answers are stored as descriptors.')
    ] = True
    json_pretty_print: Annotated[
        bool, about("Whether a long JSON result is stored indented, so that it pages by lines.")
    ] = False
    max_read_chars: Annotated[int, _size("Maximum result of one read.")] = 100_000
    max_expand_chars: Annotated[
        int, _size("Maximum total size of the texts that replace {{fd:3}} in one call.")
    ] = 1_000_000
    max_direct_output_tokens: Annotated[
        int | None,
        _size(
            "Instead of max_direct_output_chars: a result of more tokens becomes a descriptor.", example=2000
        ),
    ] = None
    hold_back_tools: Annotated[
        bool,
        about(
            "Whether the tools that have no use without a descriptor may be offered to an agent only once it"
            " has one, where that loses no cached prefix. Short tasks then do not pay for them."
        ),
    ] = True
    tool: Annotated[
        dict[str, ToolPolicy],
        about(
            "For functions of [tools] python, each under its name as [file_descriptor.tool.NAME]:"
            ' inline ("auto", "always", "never"), max_direct_output_chars or max_direct_output_tokens,'
            ' preview ("auto", "head", "tail", "both") and preview_chars, head and tail together.',
            {"search": {"preview": "tail", "preview_chars": 1000}},
        ),
    ] = {}

    @property
    def direct_chars(self) -> int:
        """Maximum length (characters) of a result that stays inline, where tokens do not count instead."""
        return DIRECT_CHARS if self.max_direct_output_chars is None else self.max_direct_output_chars

    @property
    def whole_limit(self) -> int:
        """Maximum length (characters) of a stored text that is shown whole; 0: none is."""
        return min(self.whole_chars, self.max_read_chars)

    def __post_init__(self) -> None:
        if self.enabled is not None and type(self.enabled) is not bool:
            raise InvalidArgument("enabled", "must be true or false, or left out")
        for name in FLAGS:
            if type(getattr(self, name)) is not bool:
                raise InvalidArgument(name, "must be true or false")
        for name, least in SIZES.items():
            check_size(name, getattr(self, name), least)
        for name in THRESHOLDS:
            if (size := getattr(self, name)) is not None:
                check_size(name, size)
        if None not in (self.max_direct_output_tokens, self.max_direct_output_chars):
            problem = "max_direct_output_chars is given too; keep one of them"
            raise InvalidArgument("max_direct_output_tokens", problem)
        if not isinstance(self.tool, dict):
            raise InvalidArgument("tool", "must have a ToolPolicy for each name of a tool")
        for name, policy in self.tool.items():
            if not isinstance(name, str) or not isinstance(policy, ToolPolicy):
                raise InvalidArgument(f"tool.{quoted(name)}", "must be a ToolPolicy under the name of a tool")
            policy.check(f"tool.{name if name.isidentifier() else quoted(name)}.")


class FDConfig(FDSection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes and switches of an agent's descriptors. Sizes are in characters.

    tool            {"name": ToolPolicy(...)}: what becomes of the results of single tools
    count_tokens    function that counts the tokens of a text for `max_direct_output_tokens` (default: an
                    estimate). If it fails, the estimate counts, and the failure is logged once

    Raises `InvalidArgument` with the field's name for a flag that is not a bool, a size that is not an
    integer from 1 to 2**53, and values that contradict each other.

    >>> FDConfig(default_page_size=2000).max_read_chars
    100000
    """

    count_tokens: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count_tokens is not None and not callable(self.count_tokens):
            raise InvalidArgument("count_tokens", "must be a function from a text to its number of tokens")

    @classmethod
    def of(cls, section: FDSection) -> FDConfig:
        """Return the configuration that a program file gives."""
        return cls(**{name: getattr(section, name) for name in FDSection.__struct_fields__})
