"""The environment, directory and installation that a program was started with.

A background worker outlives the command that started it. A later command compares the worker's surroundings
with its own: a different API key, proxy or queue matters to every agent; another directory, variable or
installation only to agents that call the user's Python functions.

Values of variables are stored as salted digests, so that no API key is written to disk.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Collection, Mapping

import msgspec

from fdstore.model.msgspec_types import prepare
from fdstore.model.providers import KEY_VARIABLES, VARIABLES

OF_SDKS = ("ANTHROPIC_", "OPENAI_")
"""The beginnings of all variables of the SDKs of models."""

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_FOR_AGENTS = ("SSL_CERT_FILE", "SSL_CERT_DIR", "FDSTORE_BROKER_URL", *_PROXIES, *map(str.upper, _PROXIES))
"""Variables that affect every agent, besides those of the SDK."""

_OF_TERMINALS = (
    *("ALACRITTY_", "COLORTERM", "DBUS_", "FDSTORE_", "GNOME_TERMINAL", "GPG_", "HIST", "INVOCATION_ID"),
    *("ITERM", "JOURNAL_STREAM", "KITTY_", "KONSOLE_", "LC_TERMINAL", "LESS", "LS_COLORS", "PROMPT", "PS1"),
    *("PYTEST_", "SSH_", "TERM", "TMUX", "VSCODE_", "VTE_", "WEZTERM_", "WT_"),
    *("XDG_SESSION", "XDG_SEAT", "XDG_VTNR"),
)
_OF_SHELLS = frozenset(
    ["_", "COLUMNS", "DISPLAY", "EDITOR", "LINES", "MAIL", "OLDPWD", "PWD", "SHLVL", "STY", "WINDOWID"]
)
"""Prefixes and names of variables that differ between terminals and do not affect the work."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Surroundings of a program. `environment` maps names of variables to digests of their values."""

    installation: str
    directory: str
    salt: str
    environment: dict[str, str]

    @classmethod
    def here(cls, salt: str, environ: Mapping[str, str] | None = None) -> Surroundings:
        """Return the surroundings of this program, with `environ` in place of `os.environ`."""
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

    def differences(
        self, now: Surroundings, *, for_functions: bool, variables: Collection[str] = ()
    ) -> list[str]:
        """Return the differences from `now`, which must have the same salt, as text. `for_functions`: include
        differences that matter only to the user's Python functions. `variables` matter too: those with the
        keys of servers that a program names. That a key is not set here is no difference: then this program
        asks no model."""
        found = []
        counts = _for_functions if for_functions else _for_agents
        for name in sorted(self.environment.keys() | now.environment.keys()):
            there, here = self.environment.get(name), now.environment.get(name)
            if not (counts(name) or name in variables):
                continue
            if there == here or (here is None and (name in KEY_VARIABLES or name in variables)):
                continue
            how = "is not set" if there is None else "is set" if here is None else "is another"
            found.append(f"{name} {how} there")
        if for_functions and self.directory != now.directory:
            found.append(f"its directory is {self.directory}")
        if for_functions and self.installation != now.installation:
            found.append(f"its Python is that of {self.installation}")
        return found


prepare(Surroundings)


def _for_agents(name: str) -> bool:
    return name.startswith(OF_SDKS) or name in VARIABLES or name in _FOR_AGENTS


def _for_functions(name: str) -> bool:
    return _for_agents(name) or not (name.startswith(_OF_TERMINALS) or name in _OF_SHELLS)
