"""Configuration of `run_python`: `[python]` and `[python.ask]` of a program file, and `AskConfig`.

The program of an agent is stored with its process, and so are these, where they are set.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.call_limits import CallLimits
from fdstore.model.fields import about
from fdstore.model.model_servers import BaseUrl, KeyVariable, ModelServer, server_mistake
from fdstore.model.providers import ProviderName
from fdstore.model.records import ModelPrice, Ordinal, TreeLimits
from fdstore.store.processes.asks import AskSettings
from fdstore.text.numbers import BYTE_UNITS, MAX_INTEGER, parse_number

Bytes = Annotated[int | str, Meta(extra_json_schema={"type": ["integer", "string"]})]

_ASK, _CALL = AskSettings(model=""), CallLimits()

LEAST_MEMORY = 16 << 20
"""The interpreter needs some of its memory for itself."""


Price = Annotated[float, Meta(ge=0, le=1e9)]


class PriceSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a million tokens of the model, also as [model.price]: then screens show what agents
    cost."""

    input: Annotated[Price, about("The price of input. Required.", 3.0)]
    output: Annotated[Price, about("The price of output. Required.", 15.0)]
    cache_read: Annotated[
        Price | None, about("The price of input read from the prompt cache. Default: that of input.", 0.3)
    ] = None
    cache_write: Annotated[
        Price | None, about("The price of input written to the cache. Default: that of input.", 3.75)
    ] = None
    currency: Annotated[
        str, Meta(description="Shown behind amounts.", examples=["USD"], extra_json_schema={"maxLength": 12})
    ] = ""

    @classmethod
    def of(cls, price: ModelPrice) -> PriceSection:
        """Return the section that gives this price."""
        return cls(**msgspec.structs.asdict(price))

    def as_record(self) -> ModelPrice:
        """Return the price as it is stored with the program."""
        return ModelPrice(**msgspec.structs.asdict(self))


class AskSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that code of run_python asks with `ask`. Its server is that of the agent, unless the section
    names a provider, a URL or a variable."""

    model: Annotated[
        str, about("The model that answers. Default: that of the agent.", "claude-haiku-4-5")
    ] = ""
    provider: Annotated[ProviderName | None, about("The API that is called. Default: that of the agent.")] = (
        None
    )
    base_url: BaseUrl = None
    api_key_env: KeyVariable = None
    max_tokens: Annotated[Ordinal, about("The most tokens of one answer.")] = _ASK.max_tokens
    system: Annotated[str, about("Its system prompt.", "Answer in one line.")] = ""
    max_chars: Annotated[Ordinal, about("The most characters of the texts of one question.")] = _ASK.max_chars
    at_once: Annotated[Ordinal, about("How many questions of one call are answered at the same time.")] = (
        _ASK.at_once
    )
    price: Annotated[
        PriceSection | None,
        about(
            "What a million tokens of it cost, if it is not the model of the agent.",
            {"input": 1.0, "output": 5.0, "currency": "USD"},
        ),
    ] = None

    def __post_init__(self) -> None:
        if mistake := server_mistake(self.base_url, self.api_key_env):
            field, problem = mistake
            raise InvalidArgument(f"python.ask.{field}", problem)

    def server_beside(self, agent: ModelServer) -> ModelServer:
        """Return the server that answers: by default that of the agent."""
        if self.provider is None and self.base_url is None and self.api_key_env is None:
            return agent.server
        provider = self.provider or agent.provider
        return ModelServer(provider=provider, base_url=self.base_url, api_key_env=self.api_key_env).server


class PythonSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one call of run_python. Sizes are bytes, or texts as "64MiB"."""

    seconds: Annotated[
        float, Meta(ge=0.1, le=86_400), about("Its own processor time, waiting not counted.")
    ] = _CALL.seconds
    memory: Annotated[Bytes, about("The memory of its variables.")] = "256MiB"
    state: Annotated[Bytes, about("How large the variables that are kept for the next call may be.")] = (
        "64MiB"
    )
    calls: Annotated[Ordinal, about("How often it may read, search, ask and so on.")] = _CALL.calls
    max_output: Annotated[Ordinal, about("The most characters that it may print.")] = _CALL.max_output
    max_text: Annotated[Bytes, about("The largest text that it may read at once.")] = "16MiB"
    ask: Annotated[AskSection, about("The model that code asks, as [python.ask].")] = AskSection()

    def __post_init__(self) -> None:
        if self.memory_bytes < LEAST_MEMORY:
            raise InvalidArgument("python.memory", "is too little for the interpreter; give it 16MiB or more")
        for name in ("state", "max_text"):
            self._bytes(name)

    def _bytes(self, name: str) -> int:
        given = getattr(self, name)
        value = given if isinstance(given, int) else parse_number(given, BYTE_UNITS)
        if value is None or not 1 <= value <= MAX_INTEGER:
            raise InvalidArgument(f"python.{name}", f'{quoted(given)} is not a size; write it as "64MiB"')
        return value

    @property
    def memory_bytes(self) -> int:
        return self._bytes("memory")

    @property
    def state_bytes(self) -> int:
        return self._bytes("state")

    @property
    def max_text_bytes(self) -> int:
        return self._bytes("max_text")

    def limits_under(self, tree: TreeLimits) -> CallLimits:
        """Return the limits that the interpreter enforces: no higher than the operator's ceilings."""
        return CallLimits(
            seconds=_lower(self.seconds, tree.python_seconds),
            memory_bytes=int(_lower(self.memory_bytes, tree.python_memory)),
            calls=int(_lower(self.calls, tree.python_calls)),
            max_output=self.max_output,
        )


def _lower(limit: float, ceiling: int | msgspec.UnsetType) -> float:
    return limit if isinstance(ceiling, msgspec.UnsetType) else min(limit, ceiling)


class AskConfig(ModelServer, frozen=True, kw_only=True):
    """The model that code of `run_python` asks in a loop of your own: `Toolset(ask=AskConfig(model="..."))`.

    model       the model, as its provider calls it
    provider    the API that is called, `base_url` the server and `api_key_env` the variable with its key, as
    in
                `[model]` of a program file
    max_tokens  the most tokens of one answer
    system      its system prompt
    max_chars   the most characters of the texts of one question; longer ones are refused
    at_once     how many questions of one call are answered at the same time
    parameters  more parameters of the Messages API
    price       what a million tokens cost, for `ps` and the inspector

    >>> AskConfig(model="claude-haiku-4-5").at_once
    50
    """

    model: str
    max_tokens: int = _ASK.max_tokens
    system: str = ""
    max_chars: int = _ASK.max_chars
    at_once: int = _ASK.at_once
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    price: ModelPrice | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.model, str) or not self.model.strip():
            raise InvalidArgument("ask.model", "name the model that answers")
        for name in ("max_tokens", "max_chars", "at_once"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidArgument(f"ask.{name}", f"{quoted(value)} is not a whole number from 1 on")

    @property
    def settings(self) -> AskSettings:
        """Return what a worker needs to know."""
        return AskSettings(**msgspec.structs.asdict(self))
