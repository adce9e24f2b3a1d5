"""The examples of docstrings run against a real Redis: `store` is connected, `proc` a new process of it,
`tools` a toolset of that, and `build.log` a file of 5000 lines."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore import aio
from tests import examples

WITH_STORE = [found for found in examples.docstrings() if found.needs_store]


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory with a long file, and an environment that names the test's Redis."""
    (tmp_path / "build.log").write_text("".join(f"line {number} of the build\n" for number in range(1, 5001)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FDSTORE_URL", redis_url)


@pytest.mark.parametrize("found", [d for d in WITH_STORE if not d.is_awaited], ids=lambda found: found.name)
def test_the_example_prints_its_documented_output(
    found: examples.Docstring, folder: None, redis_url: str
) -> None:
    with fdstore.connect(redis_url) as store:
        proc = store.process("triage")
        examples.run(
            found, {"fdstore": fdstore, "store": store, "proc": proc, "tools": fdstore.Toolset(proc)}
        )


@pytest.mark.parametrize("found", [d for d in WITH_STORE if d.is_awaited], ids=lambda found: found.name)
def test_the_awaitable_example_prints_its_documented_output(
    found: examples.Docstring, folder: None, redis_url: str
) -> None:
    async def names() -> dict[str, Any]:
        store = await aio.connect(redis_url)
        proc = await store.process("triage")
        return {"fdstore": fdstore, "store": store, "proc": proc, "tools": aio.Toolset(proc)}

    with asyncio.Runner() as runner:
        results = runner.run(names())
        examples.run(found, results, runner.get_loop())
        runner.run(results["store"].close())
