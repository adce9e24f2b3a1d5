"""The APIs of models that agents speak. Tests run with the Messages API, those marked `every_dialect` with
the others too: a fixture of tests/conftest.py sets `current` for one test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from fdstore.model.providers import DEFAULT_PROVIDER, PROVIDERS, SPEAKERS
from fdstore.testing.server import DIALECTS as SCRIPTED
from tests.thorough import thorough

if TYPE_CHECKING:
    from fdstore.agents.loop.models.base import Model
    from fdstore.testing import ScriptedModel


class DialectUnderTest(NamedTuple):
    """A provider whose API is not that of another: the path of its base URL, and its variables."""

    provider: str
    path: str
    key_name: str
    url_name: str

    def client(self, server: str, **settings: Any) -> Model:
        """Return a client of the server at this address. Imports its SDK."""
        from fdstore.agents.loop.models.providers import open_class

        return open_class(self.provider)(base_url=server + self.path, **settings)

    def in_program(self) -> str:
        """Return the line of `[model]` that names it."""
        return f'provider = "{self.provider}"\n'


DIALECTS = {
    name: DialectUnderTest(name, SCRIPTED[api].below, "".join(PROVIDERS[name].keys[:1]), PROVIDERS[name].url)
    for api, name in SPEAKERS.items()
}

_OTHERS = [name for name in DIALECTS if name != DEFAULT_PROVIDER]
_WHY = "what the Messages API holds, with another API"
every_dialect = pytest.mark.parametrize(
    "dialect",
    [DEFAULT_PROVIDER, *thorough(_WHY, *_OTHERS)],
    indirect=True,
)
"""Runs a test, or those of a module as its `pytestmark`, with each API."""

_OF_OPENAI = [name for name in DIALECTS if "openai" in PROVIDERS[name].packages]
every_openai = pytest.mark.parametrize("dialect", _OF_OPENAI, indirect=True)


class _Current:
    dialect = DIALECTS[DEFAULT_PROVIDER]


def current() -> DialectUnderTest:
    """Return the API of this test."""
    return _Current.dialect


@contextmanager
def speaking(provider: str) -> Iterator[DialectUnderTest]:
    """Make an API that of this test."""
    before, _Current.dialect = _Current.dialect, DIALECTS[provider]
    try:
        yield _Current.dialect
    finally:
        _Current.dialect = before


@contextmanager
def model_of(scripted: ScriptedModel) -> Iterator[Model]:
    """Yield a client of this test's API on a scripted model."""
    with closing(current().client(scripted.base_url, api_key=scripted.api_key)) as model:
        yield model
