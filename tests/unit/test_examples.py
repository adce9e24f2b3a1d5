"""Every public call has an example, and the examples that need no store run."""

from __future__ import annotations

import inspect
from types import ModuleType

import msgspec
import pytest

import fdstore
import fdstore.aio
from tests import examples

DOCSTRINGS = examples.docstrings()


@pytest.mark.parametrize("found", [d for d in DOCSTRINGS if not d.needs_store], ids=lambda found: found.name)
def test_an_example_prints_its_expected_output(found: examples.Docstring) -> None:
    examples.run(found, {"fdstore": fdstore})


def public_callables(module: ModuleType) -> set[str]:
    """Return the public functions, classes and methods of a module."""
    calls = set()
    for name in module.__all__:
        found = getattr(module, name)
        if not inspect.isclass(found) and not inspect.isfunction(found):
            continue  # a module, or an alias of types
        if inspect.isclass(found) and issubclass(found, (fdstore.FDStoreError, msgspec.Struct)):
            continue  # the calls that raise or return them show them
        calls.add(f"{found.__module__}.{found.__qualname__}")
        if inspect.isclass(found):
            calls |= {
                f"{found.__module__}.{found.__qualname__}.{member}"
                for member, value in vars(found).items()
                if not member.startswith("_") and (callable(value) or isinstance(value, property))
            }
    return calls


@pytest.mark.parametrize("module", [fdstore, fdstore.aio], ids=["blocking", "awaited"])
def test_every_public_call_has_an_example(module: ModuleType) -> None:
    with_example = {found.name for found in DOCSTRINGS}

    assert not public_callables(module) - with_example


def test_examples_of_the_async_api_use_await() -> None:
    awaited = [found for found in DOCSTRINGS if found.name in public_callables(fdstore.aio)]

    assert awaited
    assert not [found.name for found in awaited if not found.is_awaited]


def test_no_example_is_skipped() -> None:
    assert not [found.name for found in DOCSTRINGS if "+SKIP" in found.text]
