"""The two sets of tests: `make test` leaves out what is marked `thorough`, `make test-all` runs everything.

    @pytest.mark.thorough("the same with another pool of workers")

The mark says why a test can wait. Either it repeats a rule that another test holds, on another server, at
another moment of failure, with another option. Or it is one of the few that would take a third of the time: a
bound of time or memory, which shows at many megabytes alone, a fault at every request, a moment that is
seldom hit, interpreters started one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thorough(why: str, *values: Any) -> list[Any]:
    """Return values for `parametrize` that only `make test-all` takes.

    >>> @pytest.mark.parametrize("pool", ["threads", *thorough("the other pool", "prefork")])
    """
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*row, marks=pytest.mark.thorough(why)) for row in rows]


def sample(values: Iterable[Any], count: int, why: str) -> list[Any]:
    """Return values for `parametrize`, of which `make test` takes so many, spread over all.

    >>> @pytest.mark.parametrize("document", sample(DOCUMENTS, 6, "more documents of the same kinds"))
    """
    all_ = list(values)
    taken = {place * len(all_) // count for place in range(count)}
    return [value if place in taken else thorough(why, value)[0] for place, value in enumerate(all_)]


_left_out: set[str] = set()
_counts: list[int] = []
"""As xdist's workers, which collect, report them."""


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("thorough") and not item.get_closest_marker("long"):
            _left_out.add(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = len(_left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _counts.append(getattr(node, "workeroutput", {}).get("left_out", 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if count := max([len(_left_out), *_counts]):
        terminalreporter.write_line(
            f"`make test-all` adds {count} tests marked thorough, takes ten times as many examples of each "
            "property, and starts every worker and command as a new interpreter: several times as long"
        )
