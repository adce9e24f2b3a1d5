"""The outcome of a call of a tool: a result for the model, or other processes that it waits for."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from fdstore.elements.render import Rendered
from fdstore.lifecycle import ENDED
from fdstore.records import Descriptor, ProcessRecord


class ToolResult(msgspec.Struct, frozen=True, tag="result", tag_field="kind"):
    """Result of a call for the model: `content` is a text, or a list of content blocks of the Messages API
    (dicts) if the function returned blocks or there are images; with `is_error` the call failed and the text
    says why. Both go into the `tool_result` block unchanged.

    >>> ToolResult("12 lines")
    ToolResult(content='12 lines', is_error=False)
    """

    content: str | list[Any]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text of `content`: of blocks that of the text blocks, joined by LF.

        >>> ToolResult([{"type": "text", "text": "a plan"}, {"type": "image"}]).text
        'a plan'
        """
        if isinstance(self.content, str):
            return self.content
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")


class Offloaded(msgspec.Struct, frozen=True):
    """The output of a tool of your own as the model is to see it: `content` is a text, or a list of blocks if
    the output was one. `descriptor` is the stored text, the first one if several blocks were stored; None if
    all stayed inline. `is_error`: the output was an exception.

    >>> Offloaded("12 lines")
    Offloaded(content='12 lines', descriptor=None, is_error=False)
    """

    content: str | list[Any]
    descriptor: Descriptor | None = None
    is_error: bool = False


class Started(msgspec.Struct, frozen=True, tag="started", tag_field="kind"):
    """A call whose result is the end of other processes, in this order, or their state at `until_s` (seconds
    since the epoch by Redis's clock) if that is earlier, `seconds` after the call began."""

    processes: tuple[str, ...]
    until_s: float | None = None
    seconds: float | None = None

    def left_s(self, now_s: float) -> float | None:
        """Return for how long the call may still wait, None for any time. If the clock was set back, it
        begins again."""
        if self.until_s is None or self.seconds is None:
            return None
        return min(self.until_s - now_s, self.seconds)


ToolOutcome: TypeAlias = Rendered | list[dict[str, Any]] | Started


def has_failed(record: ProcessRecord) -> bool:
    """Return whether a process failed. A pipeline's exit code is for the model to judge (grep's 1)."""
    if record.state not in ENDED:
        return False
    return record.state != "exited" or (record.exit_code != 0 and record.kind != "pipeline")
