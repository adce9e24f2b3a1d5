"""The command lines by which a host starts fdstore: this installation, on the store that was chosen.

Hosts pass on a part of their environment only, so nothing is left to it. A URL may have a password, which
other users could read in a command line: it is written to a private file.
"""

from __future__ import annotations

import shlex
import sys

import msgspec


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The command by which a host starts fdstore: `options` of every verb, and variables of its
    environment."""

    options: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    python: str = sys.executable

    def arguments(self, *words: str) -> list[str]:
        """Return the arguments of `python` for a verb and its own arguments.

        >>> Launch(options=("--prefix", "ann")).arguments("mcp")
        ['-P', '-m', 'fdstore', 'mcp', '--prefix', 'ann']
        """
        return ["-P", "-m", "fdstore", *words, *self.options]

    def line(self, *words: str) -> str:
        """Return the line of a shell for a verb and its own arguments.

        >>> Launch(python="/opt/my py", environment={"A": "1"}).line("hook", "codex")
        "env A=1 '/opt/my py' -P -m fdstore hook codex"
        """
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        before = ["env", *variables] if variables else []
        return shlex.join([*before, self.python, *self.arguments(*words)])


def is_ours(line: object, host: str) -> bool:
    """Return whether a line of a shell is the hook of this host, of any installation.

    >>> is_ours(Launch().line("hook", "codex"), "codex"), is_ours("echo", "codex"), is_ours(7, "codex")
    (True, False, False)
    """
    return isinstance(line, str) and f" -m fdstore hook {host}" in line
