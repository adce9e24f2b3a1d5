"""The APIs of models that agents speak. Tests run with the Messages API, those marked `every_dialect` with
the others too: a fixture of tests/conftest.py sets `current` for one test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from fdstore.model.providers import DEFAULT_PROVIDER, PROVIDERS, SPEAKERS
from fdstore.testing.dialects import Dialect
from fdstore.testing.server import DIALECTS as SCRIPTED
from tests.thorough import thorough

if TYPE_CHECKING:
    from fdstore.agents.loop.models.base import Model
    from fdstore.testing import ScriptedModel


class DialectUnderTest(NamedTuple):
    """A provider whose API is not that of another: the path of its base URL, and its variables; "" for one
    that it has not."""

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

    def kind(self, type: str) -> str:
        """Return what is said of the type of an error, behind its status."""
        return f" {type}" if _scripted(self.provider).types_errors else ""


def _scripted(provider: str) -> Dialect:
    return SCRIPTED[PROVIDERS[provider].api]


DIALECTS = {
    name: DialectUnderTest(name, SCRIPTED[api].below, "".join(PROVIDERS[name].keys[:1]), PROVIDERS[name].url)
    for api, name in SPEAKERS.items()
}


def _each(names: Iterable[str]) -> pytest.MarkDecorator:
    others = [name for name in names if name != DEFAULT_PROVIDER]
    why = "what the Messages API holds, with another API"
    return pytest.mark.parametrize("dialect", [DEFAULT_PROVIDER, *thorough(why, *others)], indirect=True)


every_dialect = _each(DIALECTS)
"""Runs a test, or those of a module as its `pytestmark`, with each API."""
every_dialect_with_a_key = _each(name for name in DIALECTS if PROVIDERS[name].keys)
every_dialect_that_tells_caches = _each(name for name in DIALECTS if _scripted(name).tells_caches)
every_dialect_that_types_errors = _each(name for name in DIALECTS if _scripted(name).types_errors)

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
