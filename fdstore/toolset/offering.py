"""When the tools of a `Toolset` are offered to a model.

What a request defines costs tokens in each request, and a model without a descriptor needs none of it. With
`hold_back` a toolset of reading tools costs nothing before the first descriptor:

    True        tools and instructions are there from the first descriptor on. The list of tools then changes
                once, and a provider's prompt cache is missed once
    "deferred"  of the Messages API: the tools stand in each request with `defer_loading`, at no cost. The
                first result that is a descriptor brings them, so what was sent before stays as it was:

                    tool_result: <fd_result ...> | our instructions | tool_reference read_fd | ...

The API takes such blocks in a result that is no error, and nowhere else. If the first descriptor is shown in
an error, an input or a text, the tools are offered from then on, as with True. So no model sees a descriptor
without the tools that read it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from fdstore.elements.facts import ResultFacts
from fdstore.errors import InvalidArgument, quoted
from fdstore.results.content_blocks import text_block
from fdstore.tools.catalogue import HELD_BACK
from fdstore.tools.toolbox import Toolbox

HoldBack: TypeAlias = Literal["deferred"] | bool
Content: TypeAlias = str | list[Any]

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

    def bring_tools(self, content: Content, facts: ResultFacts, *, is_error: bool = False) -> Content:
        """Return the content of a result, which brings deferred tools if it shows the first descriptor."""
        if not self.is_deferred or not self._is_first(facts):
            return content
        if is_error:
            self._way = True
            return content
        shown = [text_block(content)] if isinstance(content, str) else content
        references = [
            {"type": "tool_reference", "tool_name": each["name"]}
            for each in self._toolbox.definitions
            if each["name"] in HELD_BACK
        ]
        return [*shown, text_block(self._toolbox.instructions), *references]

    def offer_with(self, facts: ResultFacts) -> None:
        """Offer the tools from now on, if what is shown with these facts cannot bring them."""
        if self.is_deferred and self._is_first(facts):
            self._way = True

    def offer_for_names(self, names: list[str]) -> None:
        """Offer the tools from now on, if there are names that they take."""
        if self.is_deferred and names and self._toolbox.context.first_result.fd is None:
            self._way = True

    def _is_first(self, facts: ResultFacts) -> bool:
        first = self._toolbox.context.first_result.fd
        return first is not None and any(each.fd == first for each in facts.stored)
