"""Loading packages that a program keeps until its end.

The SDK of the Messages API makes some hundred thousand objects when it is imported, and none of them
is ever garbage. Python's collector looks through all of them again and again meanwhile, which is a
third of the time that a worker takes to start, and once more whenever it looks at everything.
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
"""The packages of the extra `agents`, and those of them that only sending to the workers needs."""


def how_to_install(extra: str | None = None, *options: str) -> str:
    """The command that installs fdstore, with the packages of an extra.

    From a checkout: the name on the package index is not ours, whoever registers it could run code.

    >>> how_to_install("agents")
    "pip install '.[agents]' in a checkout of fdstore"
    """
    words = ("pip", "install", *options, f"'.[{extra}]'" if extra else ".")
    return f"{' '.join(words)} in a checkout of fdstore"


def require(packages: Sequence[str] = AGENTS, extra: str = "agents") -> None:
    """Check that packages of an extra are installed, without importing them. Raises `MissingExtra`."""
    for package in packages:
        try:
            # kombu puts a module without a spec in its own place
            found = package in sys.modules or find_spec(package) is not None
        except ImportError:
            found = False
        if not found:
            raise MissingExtra(package, how_to_install(extra))


@contextmanager
def frozen_imports() -> Iterator[None]:
    """What is made in this block stays: the collector rests meanwhile, and passes it by afterwards. For
    programs of ours; what else a user's program holds is not for us to say."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
