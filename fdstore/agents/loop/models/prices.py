"""What models cost, by the tables of the package `genai-prices` where it is installed.

A program's own price comes first. The tables are those of the installed package: it is asked for no newer
ones. A server that programs or variables name has the prices of the service at its URL, if it is a known one;
a server of one's own has none. Prices that depend on the length of a request, and those of a cache for an
hour, are taken as those of a short request and of a cache for minutes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from fdstore.agents.loop.bundle import Bundle, Program
from fdstore.model.model_servers import ModelServer
from fdstore.model.providers import PROVIDERS
from fdstore.model.records import ModelPrice
from fdstore.results.python_config import PriceSection
from fdstore.setup.optional_packages import is_installed
from fdstore.store.processes.asks import AskSettings

PACKAGE = "genai_prices"
_SAMPLE = 1000
"""Tokens of a short request."""


def known_price(
    model: str, server: ModelServer, environ: Mapping[str, str] = os.environ
) -> ModelPrice | None:
    """Return what a million tokens of a model cost at a server, in US dollars; None if that is not known."""
    if not is_installed(PACKAGE):
        return None
    from genai_prices import Usage, calc_price

    row = PROVIDERS[server.provider]
    url = server.base_url or environ.get(row.url)
    where: dict[str, Any] = {"provider_api_url": url} if url else {"provider_id": row.prices}

    def of(**tokens: int) -> float:
        price = calc_price(Usage(**tokens), model, **where).total_price
        return float(price * 1_000_000 / _SAMPLE)

    try:
        return ModelPrice(
            input=of(input_tokens=_SAMPLE),
            output=of(output_tokens=_SAMPLE),
            cache_read=of(input_tokens=_SAMPLE, cache_read_tokens=_SAMPLE),
            cache_write=of(input_tokens=_SAMPLE, cache_write_tokens=_SAMPLE),
            currency="USD",
        )
    except (LookupError, ValueError):
        return None


def priced(bundle: Bundle) -> Bundle:
    """Return the bundle with the prices that its programs do not name and that are known."""
    programs = {name: _with_prices(program) for name, program in bundle.programs.items()}
    return msgspec.structs.replace(bundle, programs=programs)


def _with_prices(program: Program) -> Program:
    if program.price is None:
        program = msgspec.structs.replace(program, price=known_price(program.model, program.server))
    ask = program.ask
    if "run_python" not in program.tools or ask.price is not None:
        return program
    price = known_price(ask.model, ask.server)
    if price is None:
        return program
    section = msgspec.structs.replace(program.python_limits.ask, price=PriceSection.of(price))
    python = msgspec.structs.replace(program.python_limits, ask=section)
    return msgspec.structs.replace(program, python_limits=python)


def priced_settings(ask: AskSettings) -> AskSettings:
    """Return the settings of asks with the price that they do not name and that is known."""
    if ask.price is not None:
        return ask
    return msgspec.structs.replace(ask, price=known_price(ask.model, ask.server))
