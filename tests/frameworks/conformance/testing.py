"""The test of the conformance set, for the adapters of one environment, and the table of what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from tests.frameworks.conformance.cases import CASES, World
from tests.frameworks.conformance.driver import Driver
from tests.frameworks.conformance.exceptions import EXCEPTIONS

PROPERTY = "conformance"
"""Of the report of a test: the adapter and the case."""


def conformance_test(*drivers: type[Driver]) -> Callable[..., None]:
    """Return a test of each case for each driver."""
    cells = [(each, name) for each in drivers for name in CASES if (each.name, name) not in EXCEPTIONS]

    @pytest.mark.parametrize(("driver", "name"), cells, ids=[f"{each.name}-{name}" for each, name in cells])
    def test(
        driver: type[Driver],
        name: str,
        redis_server: PrivateServer,
        store: Store,
        png: bytes,
        record_property: Callable[[str, object], None],
    ) -> None:
        record_property(PROPERTY, (driver.name, name))
        asyncio.run(CASES[name](World(driver, redis_server, store, png)))

    return test


EXAMPLES_SHOW = {
    "anthropic_memory": "1\tShip it.",
    "claude_agent_sdk": "900\n",
    "deepagents": "line 900 of the build",
}
"""What the examples print that keep no log out of messages, or another one."""


def examples_test(*names: str) -> Callable[..., None]:
    """Return a test of the example of each adapter or recipe, `NAME_example.py`."""

    @pytest.mark.parametrize("name", names)
    def test(
        name: str, run_example: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))

        printed = run_example(name)

        assert EXAMPLES_SHOW.get(name, "line 900 of the build") in printed.replace("\\n", "\n")
        if name not in EXAMPLES_SHOW:
            assert '<fd_result fd="fd:1"' in printed
            assert "line 500 " not in printed

    return test


def docstrings_test(*names: str) -> Callable[..., None]:
    """Return a test of the examples in the docstrings of each adapter."""

    @pytest.mark.parametrize("name", names)
    def test(name: str, run_docstrings: Callable[[str], None]) -> None:
        run_docstrings(f"fdstore.integrations.{name}")

    return test


def table(passed: Mapping[tuple[str, str], bool]) -> list[str]:
    """Return the lines of a table: a row for each case, a column for each adapter that was tested."""
    adapters = sorted({adapter for adapter, _ in passed})
    widths = [max(len(name) for name in CASES), *map(len, adapters)]

    def cell(adapter: str, case: str) -> str:
        if (adapter, case) in EXCEPTIONS:
            return "-"
        return {True: "ok", False: "FAILED", None: "not run"}[passed.get((adapter, case))]

    rows = [["", *adapters], *([case, *(cell(each, case) for each in adapters)] for case in CASES)]
    return ["  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)) for row in rows] + [
        f"- {adapter}, {case}: {reason}"
        for (adapter, case), reason in EXCEPTIONS.items()
        if adapter in adapters
    ]
