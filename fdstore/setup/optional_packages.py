"""Check for optional packages, and import large ones without the garbage collector.

Importing the SDK of the Messages API creates some hundred thousand objects, none of which is ever garbage.
Scanning them repeatedly during the import takes a third of a worker's start, and every later full collection
scans them again.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from fdstore.errors import MissingExtra

QUEUE = ("celery", "kombu")
AGENTS = ("anthropic", *QUEUE)
"""The packages of the extra `agents`; `QUEUE` is the subset needed to send to workers."""


def how_to_install(extra: str | None = None, *options: str) -> str:
    """Return the command that installs fdstore with the packages of an extra.

    From a checkout: the name on the package index is not ours, so its owner could run code here.

    >>> how_to_install("agents")
    "pip install '.[agents]' in a checkout of fdstore"
    """
    words = ("pip", "install", *options, f"'.[{extra}]'" if extra else ".")
    return f"{' '.join(words)} in a checkout of fdstore"


def require(packages: Sequence[str] = AGENTS, extra: str = "agents") -> None:
    """Check that packages of an extra are installed, without importing them. Raises `MissingExtra`."""
    for package in packages:
        if not is_installed(package):
            raise MissingExtra(package, how_to_install(extra))


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    try:
        # kombu replaces itself in sys.modules by a module without a spec
        return package in sys.modules or find_spec(package) is not None
    except ImportError:
        return False


@contextmanager
def frozen_imports() -> Iterator[None]:
    """Disable GC during imports, then `gc.freeze()`. Process-wide, so only for our own entry points: a user's
    program may depend on collecting its other objects."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
