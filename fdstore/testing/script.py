"""Select the reply to a request.

A script is a sequence of replies, a function of the request, or a mapping from text in the system prompt to
either, for several programs. Requests are assigned to the replies of a sequence in order of arrival (`place`,
called under the server's lock); a function is called outside the lock, since it may wait for another agent's
request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from fdstore.testing.replies import Reply
from fdstore.testing.requests import Request
from fdstore.testing.rules import RequestRefused

Replies = Sequence[Reply] | Callable[[Request], Reply]
"""One agent's script: replies in order, or a function that may be called from several threads."""

Script = Replies | Mapping[str, Replies]
"""A script for one agent, or one for each text that a system prompt contains."""


class ScriptPosition(msgspec.Struct, frozen=True):
    """The position of a request in a script."""

    replies: Replies
    number: int
    where: str

    def reply(self, request: Request) -> Reply:
        """Return the reply at this position. Raises `RequestRefused` after the last one, and anything that
        the script's function raises."""
        if callable(self.replies):
            return _checked(self.replies(request), f"the function{self.where}")
        if self.number > len(self.replies):
            raise RequestRefused(
                f"the script{self.where} is over: it has {len(self.replies)} replies "
                f"and this is request {self.number}"
            )
        return self.replies[self.number - 1]


class ScriptState:
    """A script with its current positions. Not thread-safe."""

    def __init__(self, script: Script) -> None:
        parts = dict(script) if isinstance(script, Mapping) else {None: script}
        self._parts: dict[str | None, Replies] = {
            key: _replies(replies, _where(key)) for key, replies in parts.items()
        }
        self._taken = dict.fromkeys(self._parts, 0)

    def place(self, request: Request) -> ScriptPosition:
        """Return the next position for this request; if several keys match, the first one's."""
        for key, replies in self._parts.items():
            if key is None or key in request.system:
                self._taken[key] += 1
                return ScriptPosition(replies, self._taken[key], _where(key))
        known = ", ".join(repr(key) for key in self._parts)
        raise RequestRefused(
            f"no script fits this system prompt; there are scripts for prompts with: {known or 'nothing'}"
        )


def _where(key: str | None) -> str:
    return "" if key is None else f" for {key!r}"


def _replies(replies: Replies, where: str) -> Replies:
    if callable(replies):
        return replies
    if isinstance(replies, str) or not isinstance(replies, Sequence):
        raise TypeError(
            f"the script{where} must be replies in order or a function, not {type(replies).__name__}"
        )
    return [_checked(reply, f"the script{where}") for reply in replies]


def _checked(reply: object, origin: str) -> Reply:
    if isinstance(reply, Reply):
        return reply
    raise TypeError(
        f"{origin} gave a {type(reply).__name__}; a reply is made by say, call, turn, fail, cut, slow or held"
    )
