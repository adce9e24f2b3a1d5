"""The outcome of a call of a tool: a result for the model, or other processes that it waits for."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from fdstore.elements.build import Rendered
from fdstore.elements.facts import NO_FACTS, ResultFacts, join_facts, move_blocks
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import Descriptor, ProcessRecord


class ToolResult(
    msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, tag="result", tag_field="kind"
):
    """Result of a call for the model: `content` is a text, or a list of content blocks of the Messages API
    (dicts) if the function returned blocks or there are images; with `is_error` the call failed and the text
    says why. Both go into the `tool_result` block unchanged. `facts` tells your program what the call stored,
    showed or did. `after`: blocks for the same message, behind its results, of a result that loads deferred
    tools (`Toolset(hold_back="deferred")`).

    >>> ToolResult("12 lines")
    ToolResult(content='12 lines')
    """

    content: str | list[Any]
    is_error: bool = False
    facts: ResultFacts = NO_FACTS
    after: list[Any] = []

    def behind(self, before: str, facts: ResultFacts) -> ToolResult:
        """Return it with a text before its content, "" for none, and more facts."""
        content, own = self.content, self.facts
        if before and isinstance(content, str):
            content = f"{before}\n{content}"
        elif before:
            content = [{"type": "text", "text": before}, *content]
            own = move_blocks(own, {each.block: each.block + 1 for each in own.stored})
        return msgspec.structs.replace(self, content=content, facts=join_facts(own, facts))

    @property
    def is_text(self) -> bool:
        """Whether `content` is a text."""
        return isinstance(self.content, str)

    @property
    def text(self) -> str:
        """The text of `content` and `after`: of blocks that of the text blocks, joined by LF.

        >>> ToolResult([{"type": "text", "text": "a plan"}, {"type": "image"}]).text
        'a plan'
        """
        if isinstance(self.content, str):
            return self.content
        blocks = [*self.content, *self.after]
        return "\n".join(block["text"] for block in blocks if block.get("type") == "text")


class Offloaded(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """The output of a tool of your own as the model is to see it: `content` is a text, or a list of blocks if
    the output was one. `descriptor` is the stored text, the first one if several blocks were stored; None if
    all stayed inline. `is_error`: the output was an exception. `facts` has all that was stored. `after` is as
    that of a `ToolResult`.

    >>> Offloaded("12 lines")
    Offloaded(content='12 lines')
    """

    content: str | list[Any]
    descriptor: Descriptor | None = None
    is_error: bool = False
    facts: ResultFacts = NO_FACTS
    after: list[Any] = []


def tool_result(shown: Rendered | Offloaded, *, is_error: bool = False) -> ToolResult:
    """Return an element or an output as the result of a call."""
    content = shown.text if isinstance(shown, Rendered) else shown.content
    return ToolResult(content, is_error, shown.facts)


class Started(msgspec.Struct, frozen=True, tag="started", tag_field="kind"):
    """A call whose result is the end of other processes, in this order, or their state at `until_s` (seconds
    since the epoch by Redis's clock) if that is earlier, `seconds` after the call began. `resumes`: the call
    has more to do when they have ended, and is to be made again: also when one of its `questions` to a person
    has an answer, or `until_s` is over. `before` and `facts` are those of a person who has approved it, for
    its result."""

    processes: tuple[str, ...]
    until_s: float | None = None
    seconds: float | None = None
    resumes: bool = False
    questions: tuple[int, ...] = ()
    before: str = ""
    facts: ResultFacts = NO_FACTS

    def left_s(self, now_s: float) -> float | None:
        """Return for how long the call may still wait, None for any time. If the clock was set back, it
        begins again."""
        if self.until_s is None or self.seconds is None:
            return None
        return min(self.until_s - now_s, self.seconds)


ToolOutcome: TypeAlias = Rendered | Offloaded | ToolResult | Started


def has_failed(record: ProcessRecord) -> bool:
    """Return whether a process failed. A pipeline's exit code is for the model to judge (grep's 1)."""
    if record.state not in ENDED:
        return False
    return record.state != "exited" or (record.exit_code != 0 and record.kind != "pipeline")
