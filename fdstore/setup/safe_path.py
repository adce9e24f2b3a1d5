"""Keep the current directory off `sys.path` and PATH.

The files in the directory where a command starts may be hostile: written by an agent, or by the author of a
repository that was cloned there. Python imports modules from it under `python -m` and with an empty or
relative entry in PYTHONPATH; programs are run from it with such an entry in PATH.

This module imports only what Python has loaded at startup: a file in that directory could shadow the rest.
"""

import os
import sys

_CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The directory that holds the package: with an entry for it a checkout of fdstore runs."""


def drop_first_entry() -> None:
    """Remove the entry that Python prepends to `sys.path` for the command it runs, as `python -P` does."""
    if not sys.flags.safe_path:
        del sys.path[0]


def drop_relative_entries() -> None:
    """Remove relative and empty entries of PYTHONPATH and PATH, here and for child processes.

    An absolute path stays, even if it is that of the current directory.
    """
    _keep_absolute("PATH")
    relative = _keep_absolute("PYTHONPATH")
    relative.discard(_CHECKOUT)
    if relative:
        sys.path[:] = [entry for entry in sys.path if entry and os.path.abspath(entry) not in relative]


def _keep_absolute(variable: str) -> set[str]:
    """Remove relative entries from an environment variable that lists directories. Return their absolute
    paths."""
    entries = os.environ.get(variable, "").split(os.pathsep)
    kept = [entry for entry in entries if os.path.isabs(entry)]
    if len(kept) == len(entries) or entries == [""]:
        return set()
    os.environ[variable] = os.pathsep.join(kept)
    return {os.path.abspath(entry) for entry in entries}.difference(map(os.path.abspath, kept))
