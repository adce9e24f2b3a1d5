"""Read the calls of one turn from the content of a model's answer, and build the blocks of their results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from fdstore.errors import InvalidArgument, quoted
from fdstore.results.tool_outcome import ToolResult


class TurnCall(NamedTuple):
    """A `tool_use` block of the Messages API."""

    name: str
    arguments: Any
    id: str

    def result_block(self, result: ToolResult) -> dict[str, Any]:
        """Return the `tool_result` block that answers this call."""
        block = {"type": "tool_result", "tool_use_id": self.id, "content": result.content}
        return {**block, "is_error": True} if result.is_error else block


def following(content: list[Any], number: int, name: str, *, is_clear: bool) -> list[Any]:
    """Return the content of a result that follows the results of its message, since it loads deferred tools.

    number    of its call in the turn, from 1
    is_clear  the result is the last, and a text: an element, which says where it is from. Otherwise a line
              says so first, so that it is not taken for words of the user
    """
    if is_clear:
        return content
    return [{"type": "text", "text": f"The result of call {number}, of {name}:"}, *content]


def calls_in(blocks: Iterable[Any]) -> list[TurnCall]:
    """Return the calls among content blocks, which are objects of the SDK or dicts, in their order. Raises
    `InvalidArgument`.

    >>> calls_in([{"type": "text", "text": "I look."},
    ...           {"type": "tool_use", "id": "toolu_1", "name": "list_fds", "input": {}}])
    [TurnCall(name='list_fds', arguments={}, id='toolu_1')]
    """
    if isinstance(blocks, (str, dict)):
        raise InvalidArgument("blocks", "the content blocks of an answer are needed, in a list")
    calls = []
    for number, block in enumerate(blocks, 1):
        fields = block if isinstance(block, dict) else vars(block) if hasattr(block, "__dict__") else {}
        if fields.get("type") != "tool_use":
            continue
        name, call_id = fields.get("name"), fields.get("id")
        if not (isinstance(name, str) and isinstance(call_id, str) and call_id):
            raise InvalidArgument("blocks", f"block {number} is a tool_use without a name or an id")
        calls.append(TurnCall(name, fields.get("input"), call_id))
    ids = [call.id for call in calls]
    for call_id in ids:
        if ids.count(call_id) > 1:
            raise InvalidArgument("blocks", f"two calls have the id {quoted(call_id)}")
    return calls
