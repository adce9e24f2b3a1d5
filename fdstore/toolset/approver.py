"""Ask a function of the user's own loop whether a call may run, awaited or not."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.people import GivenAnswer, PersonAnswer, Question
from fdstore.store.processes import people

Approval: TypeAlias = bool | PersonAnswer
Approve: TypeAlias = Callable[[Question], Approval | Awaitable[Approval]]


class Approver:
    """Asks `approve`, which may be a coroutine function: it runs in `loop` if there is one, where the caller
    awaits the call, else in a loop of its own."""

    def __init__(self, approve: Approve) -> None:
        if not callable(approve):
            raise InvalidArgument("approve", "a function is needed, which takes a Question")
        self._approve = approve
        self.loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, question: Question) -> PersonAnswer:
        """Return what the function says to a call. Runs in a thread if there is a `loop`. Raises what the
        function raises, `InvalidArgument` for any other value, and `TooLarge`."""
        found = self._approve(question)
        if inspect.isawaitable(found):
            found = self._awaited(found)
        if isinstance(found, bool):
            found = PersonAnswer(approved=found)
        if not isinstance(found, PersonAnswer) or found.approved is None:
            raise InvalidArgument("approve", f"it must return a bool or a PersonAnswer, not {quoted(found)}")
        given = GivenAnswer(
            approve=found.approved,
            reason=found.reason,
            arguments=found.arguments,
            by=found.by,
            door=found.door or "python",
        )
        return people.decide(question, given)

    def _awaited(self, found: Awaitable[Approval]) -> Approval:
        async def result() -> Approval:
            return await found

        if self.loop is not None:
            return asyncio.run_coroutine_threadsafe(result(), self.loop).result()
        with ThreadPoolExecutor(1) as thread:  # this one may have a running loop, as in a notebook
            return thread.submit(asyncio.run, result()).result()
