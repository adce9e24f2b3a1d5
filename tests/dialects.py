"""The APIs of models that agents speak. Tests run with the Messages API, those marked `every_dialect` with
the others too: a fixture of tests/conftest.py sets `current` for one test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.thorough import thorough

if TYPE_CHECKING:
    from fdstore.agents.loop.models.base import Model
    from fdstore.testing import ScriptedModel


class DialectUnderTest(NamedTuple):
    """The client of an API, whose SDK is imported where it is used, the path of its base URL, and its
    variables."""

    provider: str
    module: str
    name: str
    path: str
    key_name: str
    url_name: str

    def client(self, server: str, **settings: Any) -> Model:
        """Return a client of the server at this address."""
        module = import_module(f"fdstore.agents.loop.models.{self.module}")
        model: Model = getattr(module, self.name)(base_url=server + self.path, **settings)
        return model


_OPENAI = ("/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL")
_ANTHROPIC = ("", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
DIALECTS = {
    each.provider: each
    for each in (
        DialectUnderTest("anthropic", "anthropic", "AnthropicModel", *_ANTHROPIC),
        DialectUnderTest("openai", "openai_chat", "OpenAIChatModel", *_OPENAI),
        DialectUnderTest("openai-responses", "openai_responses", "OpenAIResponsesModel", *_OPENAI),
    )
}

_WHY = "what the Messages API holds, with another API"
every_dialect = pytest.mark.parametrize(
    "dialect",
    ["anthropic", *thorough(_WHY, "openai"), *thorough(_WHY, "openai-responses")],
    indirect=True,
)
"""Runs a test, or those of a module as its `pytestmark`, with each API."""

every_openai = pytest.mark.parametrize("dialect", ["openai", "openai-responses"], indirect=True)


class _Current:
    dialect = DIALECTS["anthropic"]


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
