"""The interface between an agent and its model: the protocol that each provider's client implements.

Which server an agent asks is a `ModelServer`; with which key and by whose leave,
`fdstore.model.model_servers` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from fdstore.agents.loop.conversation import Assistant
from fdstore.text.surrogates import escape_surrogates

PromptCache = bool | Literal["5m", "1h"]
"""The use of a provider's prompt cache: on or off, or the time that it keeps requests, if not its default."""


class Listener(Protocol):
    """A consumer of an answer while it is generated. An exception from either method ends the request."""

    def on_text(self, text: str) -> None:
        """Receive the next text delta; "" for every other event."""

    def on_retry(self) -> None:
        """Note that the answer broke off and is requested again."""


class Retry(msgspec.Struct, frozen=True):
    """A failed try that is retried: its number (from 1), the pause before the next try, and why it failed."""

    number: int
    pause_s: float
    reason: str

    def __str__(self) -> str:
        return escape_surrogates(f"try {self.number}: {self.reason}; asking again in {self.pause_s:.1f} s")


class ModelFailed(Exception):
    """The model cannot be reached or refuses the request; the text says why. Not retried."""

    def __init__(self, text: str) -> None:
        super().__init__(escape_surrogates(text))


class TimeIsOver(ModelFailed):
    """The agent's time ended while an answer was arriving."""


class PromptTooLong(ModelFailed):
    """The model refuses a request because the conversation is longer than it takes."""


class DeferralRefused(ModelFailed):
    """The model's server refuses a request because tools in it are deferred."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request for an answer: what is sent, and how long it is tried.

    is_first      no answer of the conversation is there yet
    prompt_cache  the provider keeps the request for the next one, which begins with the same bytes
    until_s       the time, of `time.monotonic`, until which it is tried again. A try that still goes on then
                  is ended
    give_up_s     the seconds for which it is, counted from the last sign of life before the first failure
    pause         waits between tries
    check         is called several times a second while an answer is awaited; either may raise to give up,
                  which ends the request at once
    report        is called before each pause
    listener      receives the text as it arrives
    """

    model: str
    system: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    parameters: dict[str, Any]
    prompt_cache: PromptCache = False
    is_first: bool = False
    until_s: float
    give_up_s: float = 600.0
    pause: Callable[[float], None]
    check: Callable[[], None]
    report: Callable[[Retry], None] | None = None
    listener: Listener | None = None


class Model(Protocol):
    """A client of a model. Safe to share between threads."""

    @property
    def takes_deferred_tools(self) -> bool:
        """Whether its server is known to take tools that are loaded later."""

    def close(self) -> None:
        """Close its connections."""

    def query(self, request: ModelRequest) -> Assistant:
        """Request one answer, and return it when it is complete.

        The tokens of answers that were discarded because a call was malformed are added to those of the
        answer returned. Raises `ModelFailed`, and of its kinds `TimeIsOver`, `PromptTooLong`,
        `DeferralRefused`.
        """
