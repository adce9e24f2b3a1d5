"""The only reader of the environment: where things are, when no argument says so.

FDSTORE_URL         the store: redis://, rediss://, unix://, sentinel://, redis+cluster:// (default: the
                    embedded server)
FDSTORE_BROKER_URL  the workers' queue (default: the same Redis; needed when that is a Cluster)
FDSTORE_DATA_DIR    the embedded server's files (default: fdstore/ under the XDG data home)
FDSTORE_PREFIX      what every key begins with (default: fdstore)
XDG_RUNTIME_DIR     where a short name for the embedded server's socket goes, if the data directory's
                    path is too long for a socket (default: the temporary directory)
NO_COLOR            anything in it: no colours, on a terminal neither (as TERM=dumb)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

DEFAULT_PREFIX = "fdstore"

MIN_REDIS_VERSION = (6, 2)
"""The oldest Redis that a store can be on."""


def queue_prefix(prefix: str) -> str:
    """Return what the keys of the workers' queue begin with, for a store whose keys begin with `prefix`.

    >>> queue_prefix("fdstore")
    'fdq:fdstore:'
    """
    return f"fdq:{prefix}:"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the environment says. `url` is None when the embedded server is to be used."""

    url: str | None
    broker_url: str | None
    data_dir: Path
    prefix: str
    runtime_dir: Path | None = None
    colours: bool = True


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of `environ` (default: this process's).

    >>> read({"HOME": "/home/ann"}).data_dir
    PosixPath('/home/ann/.local/share/fdstore')
    """
    env = os.environ if environ is None else environ
    home = Path(env.get("HOME") or Path.home())
    data_home = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share")
    return Settings(
        url=env.get("FDSTORE_URL") or None,
        broker_url=env.get("FDSTORE_BROKER_URL") or None,
        data_dir=Path(env.get("FDSTORE_DATA_DIR") or data_home / "fdstore"),
        prefix=env.get("FDSTORE_PREFIX") or DEFAULT_PREFIX,
        runtime_dir=Path(env["XDG_RUNTIME_DIR"]) if env.get("XDG_RUNTIME_DIR") else None,
        colours=not env.get("NO_COLOR") and env.get("TERM") != "dumb",
    )
