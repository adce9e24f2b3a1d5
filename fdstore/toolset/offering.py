"""When the tools of a `Toolset` are offered to a model.

What a request defines costs tokens in each request, and a model without a descriptor needs none of it. With
`hold_back` a toolset of reading tools costs nothing before the first descriptor:

    True        tools and instructions are there from the first descriptor on. The list of tools then changes
                once, and a provider's prompt cache is missed once
    "deferred"  of the Messages API: the tools stand in each request with `defer_loading`, at no cost. The
                first result that is a descriptor loads them, so what was sent before stays as it was. The API
                takes references in results alone, without anything else in the result, and not in errors.
                So what it shows, and our instructions, follow the results of its message:

                    tool_result: tool_reference read_fd, ...    text: <fd_result ...    text: instructions

If the first descriptor is shown in an error, an input or a text, the tools are offered from then on, as with
True. So no model sees a descriptor without the tools that read it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from fdstore.elements.facts import ResultFacts
from fdstore.errors import InvalidArgument, quoted
from fdstore.results.content_blocks import text_block
from fdstore.results.tool_outcome import Offloaded, ToolResult
from fdstore.tools.catalogue import HELD_BACK
from fdstore.tools.toolbox import Toolbox

HoldBack: TypeAlias = Literal["deferred"] | bool
Shown = TypeVar("Shown", ToolResult, Offloaded)

UNTIL_NOW = 'hold_back="deferred" is of the Messages API; use hold_back=True, which takes them each turn'


class Offering:
    """What is offered now. Nothing is held back where a tool has a use without descriptors, or the process
    has some already, as far as this client has seen."""

    def __init__(self, toolbox: Toolbox, hold_back: HoldBack) -> None:
        if hold_back is not True and hold_back is not False and hold_back != "deferred":
            raise InvalidArgument("hold_back", f'must be True, False or "deferred", not {quoted(hold_back)}')
        context = toolbox.context
        self._toolbox = toolbox
        may = context.fds_on and context.enabled <= HELD_BACK and not context.handle.has_met
        self._way: HoldBack = hold_back if may else False

    @property
    def is_deferred(self) -> bool:
        return self._way == "deferred"

    @property
    def is_held_back(self) -> bool:
        """Return whether the tools on descriptors are not offered yet."""
        return self._way is True and not self._toolbox.context.handle.has_met

    @property
    def definitions(self) -> list[dict[str, Any]]:
        found = self._toolbox.definitions
        if self.is_held_back:
            return [each for each in found if each["name"] not in HELD_BACK]
        if self.is_deferred:
            return [{**each, "defer_loading": True} if each["name"] in HELD_BACK else each for each in found]
        return found

    @property
    def instructions(self) -> str:
        return "" if self.is_held_back or self.is_deferred else self._toolbox.instructions

    def load_tools(self, result: Shown) -> Shown:
        """Return a result, which loads deferred tools if it shows the first descriptor."""
        if not self.is_deferred or not self._is_first(result.facts):
            return result
        if result.is_error:
            self._way = True
            return result
        content = result.content
        shown: list[Any] = [text_block(content)] if isinstance(content, str) else content
        references = [
            {"type": "tool_reference", "tool_name": each["name"]}
            for each in self._toolbox.definitions
            if each["name"] in HELD_BACK
        ]
        after = [*shown, text_block(self._toolbox.instructions)]
        return msgspec.structs.replace(result, content=references, after=after)

    def offer_with(self, facts: ResultFacts) -> None:
        """Offer the tools from now on, if what is shown with these facts cannot load them."""
        if self.is_deferred and self._is_first(facts):
            self._way = True

    def offer_for_names(self, names: list[str]) -> None:
        """Offer the tools from now on, if there are names that they take."""
        if self.is_deferred and names and self._toolbox.context.first_result.fd is None:
            self._way = True

    def _is_first(self, facts: ResultFacts) -> bool:
        first = self._toolbox.context.first_result.fd
        return first is not None and any(each.fd == first for each in facts.stored)
