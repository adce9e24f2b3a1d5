"""What a program was started with that its work may depend on: environment, directory, installation.

A background worker lives on after the command that started it. A later command compares what the worker has
with what it has itself: another key, proxy or queue matters to every agent; another directory, variable or
installation only to agents that call Python functions of the user.

Values of variables are kept as salted digests: a key must not lie on disk.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping

import msgspec

KEYS = frozenset({"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"})
"""Variables whose absence is no difference: a command without a key asks no model."""

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_FOR_AGENTS = ("SSL_CERT_FILE", "SSL_CERT_DIR", "FDSTORE_BROKER_URL", *_PROXIES, *map(str.upper, _PROXIES))
"""Variables that every agent depends on, beside those of the SDK."""

_OF_TERMINALS = (
    *(
        "ALACRITTY_",
        "COLORTERM",
        "DBUS_",
        "FDSTORE_",
        "GNOME_TERMINAL",
        "GPG_",
        "HIST",
        "INVOCATION_ID",
        "ITERM",
    ),
    *("JOURNAL_STREAM", "KITTY_", "KONSOLE_", "LC_TERMINAL", "LESS", "LS_COLORS", "PROMPT", "PS1", "PYTEST_"),
    *("SSH_", "TERM", "TMUX", "VSCODE_", "VTE_", "WEZTERM_", "WT_", "XDG_SESSION", "XDG_SEAT", "XDG_VTNR"),
)
_OF_SHELLS = (
    "_",
    "COLUMNS",
    "DISPLAY",
    "EDITOR",
    "LINES",
    "MAIL",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "STY",
    "WINDOWID",
)
"""Beginnings of names, and names, of variables that differ between terminals and say nothing of the work."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a program was started with. `environment` maps names of variables to digests of their values."""

    installation: str
    directory: str
    salt: str
    environment: dict[str, str]

    @classmethod
    def here(cls, salt: str, environ: Mapping[str, str] | None = None) -> Surroundings:
        """Return those of this program; `environ` instead of its environment."""
        chosen = os.environ if environ is None else environ
        return cls(
            installation=sys.prefix,
            directory=os.getcwd(),
            salt=salt,
            environment={
                name: hashlib.sha256(f"{salt}{value}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
                for name, value in chosen.items()
                if _for_agents(name) or _for_functions(name)
            },
        )

    def misfits(self, now: Surroundings, *, for_functions: bool) -> list[str]:
        """Return in words what a program with these has otherwise than one with `now`, of the same salt.
        `for_functions`: including what only Python functions of the user depend on."""
        found = []
        counts = _for_functions if for_functions else _for_agents
        for name in sorted(filter(counts, self.environment.keys() | now.environment.keys())):
            there, here = self.environment.get(name), now.environment.get(name)
            if there == here or (here is None and (name in KEYS)):
                continue
            how = "is not set" if there is None else "is set" if here is None else "is another"
            found.append(f"{name} {how} there")
        if for_functions and self.directory != now.directory:
            found.append(f"its directory is {self.directory}")
        if for_functions and self.installation != now.installation:
            found.append(f"its Python is that of {self.installation}")
        return found


def _for_agents(name: str) -> bool:
    return name.startswith("ANTHROPIC_") or name in _FOR_AGENTS


def _for_functions(name: str) -> bool:
    return _for_agents(name) or not (name.startswith(_OF_TERMINALS) or name in _OF_SHELLS)
