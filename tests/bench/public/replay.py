"""A task as a conversation: its results go through a real `Toolset`, with one threshold.

No model is asked, so what is read of a stored text is a rule: it is searched once, for the first word of five
letters or more in its second half, and the page in its middle is read. A conversation has both, marked as
reads, and is counted with and without them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from fdstore.client import Process
from fdstore.results.config import FDConfig
from fdstore.tools.tool_names import ToolName
from fdstore.toolset._sync import Toolset
from tests.bench.public.package import PublicTask
from tests.bench.tasks.counting import Part, as_json

TOOLS: tuple[ToolName, ...] = ("read_fd", "search_fd")
WORD = re.compile(r"[^\W\d_]{5,}")


class Exchange(NamedTuple):
    """A call, its whole result, and what the model is shown of it: `kept` is all of it, `stored` a
    descriptor, and `read` an answer of our own tools, which nobody calls where nothing is stored."""

    kind: Literal["kept", "stored", "read"]
    call: Part
    whole: Part
    shown: Part


class PublicTurn(NamedTuple):
    """What the user says, and the calls that follow one another."""

    question: Part
    exchanges: Sequence[Exchange]


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A replayed task: the definitions of its functions, our definitions and instructions, and its turns."""

    definitions: tuple[Part, ...]
    our_definitions: tuple[Part, ...]
    our_instructions: Part
    turns: Sequence[PublicTurn]


def replay(task: PublicTask, process: Process, threshold: int) -> Conversation:
    """Replay a task: a result longer than `threshold` characters is stored in the process."""
    tools = Toolset(process, enabled=TOOLS, config=FDConfig(max_direct_output_chars=threshold))
    turns = []
    for turn in task.turns:
        exchanges: list[Exchange] = []
        for call in turn.calls:
            written = _assistant(call.name, call.arguments)
            offloaded = tools.offload(call.result, call.name)
            whole, shown = Part("user", call.result), Part("user", str(offloaded.content))
            if offloaded.descriptor is None:
                exchanges.append(Exchange("kept", written, whole, shown))
                continue
            exchanges.append(Exchange("stored", written, whole, shown))
            fd, pages = offloaded.descriptor.fd, offloaded.descriptor.pages
            found = WORD.search(call.result, len(call.result) // 2)
            exchanges.append(_read(tools, "search_fd", {"fd": fd, "pattern": found[0] if found else "."}))
            exchanges.append(_read(tools, "read_fd", {"fd": fd, "start": (pages + 1) // 2}))
        turns.append(PublicTurn(Part("user", turn.question), exchanges))
    return Conversation(
        definitions=tuple(Part("tool", as_json(each)) for each in task.definitions),
        our_definitions=tuple(Part("tool", as_json(each)) for each in tools.definitions),
        our_instructions=Part("system", tools.instructions),
        turns=turns,
    )


def _assistant(name: str, arguments: dict[str, object]) -> Part:
    return Part("assistant", as_json([name, arguments]))


def _read(tools: Toolset, name: str, arguments: dict[str, object]) -> Exchange:
    answer = Part("user", tools.call(name, arguments).text)
    return Exchange("read", _assistant(name, arguments), answer, answer)
