"""A conversation of any framework, driven alike: what the cases of the conformance set are written against.

Each framework has one driver, which makes its agents with our adapter and a scripted model, and says what
that model was shown.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fdstore.client import Store
from fdstore.integrations.shared.any_store import AnyStore

Result = str | dict[str, Any] | list[str | bytes]
"""The value that a function returns: a text, an object, or blocks, of which bytes are PNG images."""


@dataclass(frozen=True)
class Call:
    """A call of a tool by the model."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Turn = Call | Sequence[Call]
"""One answer of the model. After its turns it says "Done."."""


@dataclass(frozen=True)
class Function:
    """A tool of the user."""

    name: str
    run: Callable[[], Result | Awaitable[Result]]
    is_direct: bool = False
    """True if its result ends the run and is what the caller gets."""
    needs_approval: bool = False
    returns_blocks: bool = False


@dataclass(frozen=True)
class Request:
    """One request to the model: the names of its tools, and what the system says."""

    tools: Sequence[str]
    system: str


@dataclass(frozen=True)
class Ran:
    """The outcome of a run."""

    results: Sequence[str]
    """The text of each result of a tool that the model was shown in its last request, in order."""
    failed: Sequence[bool]
    """For each of them, True if it was shown as an error."""
    images: int
    """The images among them."""
    seen: str
    """All that the model was shown in each request."""
    system: str
    answer: str
    """The answer that the caller got."""
    requests: Sequence[Request] = ()
    """Of an adapter with `hold_back`."""


class Driver(ABC):
    """A conversation with an agent that has some functions. Another call of `run` goes on with it."""

    name: ClassVar[str]

    def __init__(
        self, store: AnyStore, functions: Sequence[Function], thread: str | None = "chat-7", **options: Any
    ) -> None:
        self.store, self.functions, self.thread, self.options = store, functions, thread, options
        self.ours = self.adapter(store)
        self._numbers = itertools.count(1)

    def numbered(self, turns: Sequence[Turn]) -> list[list[tuple[str, Call]]]:
        """Return the calls of each turn with ids that no other call of the conversation has."""
        return [[(f"call_{next(self._numbers)}", call) for call in _calls_of(turn)] for turn in turns]

    @abstractmethod
    def adapter(self, store: AnyStore) -> Any:
        """Return our adapter. A conversation has one, as in a program that lives long."""

    @abstractmethod
    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        """Run the agent on a message."""

    async def approve(self, store: Store, *turns: Turn) -> Ran:
        """Go on with a run that waits for approval, as another process of the user would: with another agent,
        adapter and store, and what the framework keeps."""
        raise NotImplementedError(f"{self.name} has no approval")


def _calls_of(turn: Turn) -> Sequence[Call]:
    return [turn] if isinstance(turn, Call) else turn


def awaited(function: Function) -> Callable[[], Awaitable[Any]]:
    """Return a coroutine function that returns the function's result."""

    async def run() -> Any:
        result = function.run()
        return await result if isinstance(result, Awaitable) else result

    run.__name__, run.__doc__ = function.name, "A tool."
    return run


def blocking(function: Function) -> Callable[[], Any]:
    """Return a function that returns the function's result, also in a running loop."""

    def run() -> Any:
        result = function.run()
        if not isinstance(result, Awaitable):
            return result
        ended: list[Any] = []
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: ended.append(context.run(asyncio.run, _value_of(result))))
        thread.start()
        thread.join()
        return ended[0]

    run.__name__, run.__doc__ = function.name, "A tool."
    return run


async def _value_of(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
