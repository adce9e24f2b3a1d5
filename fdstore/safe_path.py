"""Keep the current directory out of what is imported.

Anyone may have written the files of the directory in which a command is started: an agent, or the author of
a repository that was cloned there. Python looks for modules there when it runs `python -m`, and when
PYTHONPATH has an entry that is empty or relative; programs are looked for there when PATH has one.

Imports nothing that is not loaded when Python starts: a file of that directory could stand in for it.
"""

import os
import sys


def drop_first_entry() -> None:
    """Remove what Python put in front of `sys.path` for the command it runs, as `python -P` does."""
    if not sys.flags.safe_path:
        del sys.path[0]


def drop_relative_entries() -> None:
    """Remove relative and empty entries of PYTHONPATH and PATH, here and for child processes.

    A directory that is named in full stays, also if it is the current one.
    """
    _keep_absolute("PATH")
    relative = _keep_absolute("PYTHONPATH")
    relative.discard(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # a checkout of fdstore
    if relative:
        sys.path[:] = [entry for entry in sys.path if entry and os.path.abspath(entry) not in relative]


def _keep_absolute(variable: str) -> set[str]:
    """Rewrite a variable that lists directories; the directories that are no longer in it."""
    given = os.environ.get(variable, "").split(os.pathsep)
    kept = [entry for entry in given if os.path.isabs(entry)]
    if len(kept) == len(given) or given == [""]:
        return set()
    os.environ[variable] = os.pathsep.join(kept)
    return {os.path.abspath(entry) for entry in given}.difference(map(os.path.abspath, kept))
