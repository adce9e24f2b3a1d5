"""What is not safe about how a Redis is set up and reached, for `fdstore doctor`.

A problem is what loses content, or lets others read it: a torn log that is loaded as it is, no log, a network
without a password or without TLS, a flaw in the server that whoever reaches it can use. A note is what
a person should know and may want: no memory limit, a second of writes that a power cut takes, a flaw that
users of this machine alone can reach.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple

from fdstore.records import Record
from fdstore.wire.store_url import StoreUrl


class Finding(Record, frozen=True, kw_only=True):
    """One thing that was looked at: whether it is well, what is so, and what to do if it is not. A `note` is
    well, and says what may be better."""

    subject: str
    ok: bool
    said: str
    advice: str = ""
    note: bool = False


class Way(NamedTuple):
    """How a store is reached: whether what is sent leaves this machine, and what protects it there."""

    leaves_machine: bool
    has_password: bool
    has_tls: bool


def way_to(place: StoreUrl) -> Way:
    """How a place is reached.

    >>> from fdstore.wire.store_url import parse_store_url
    >>> way_to(parse_store_url("rediss://:secret@db.example"))
    Way(leaves_machine=True, has_password=True, has_tls=True)
    """
    options = place.options
    hosts = [host for host, _ in place.hosts] or [options.get("host", "localhost")]
    return Way(
        leaves_machine="path" not in options and not all(map(_is_loopback, hosts)),
        has_password=bool(options.get("password")),
        has_tls=place.url.startswith("rediss://"),
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host in ("localhost", "localhost.localdomain", "ip6-localhost")


def password(way: Way) -> Finding:
    """Whether whoever reaches it gets in."""
    if way.has_password or not way.leaves_machine:
        said = "a password is asked for" if way.has_password else "no password; it is on this machine"
        return Finding(subject="password", ok=True, said=said)
    return Finding(
        subject="password",
        ok=False,
        said="the URL has none and is not of this machine: whoever reaches the server reads and changes all",
        advice="set `requirepass`, or an aclfile as deploy/users.acl is one, and put the password in the URL",
    )


def encryption(way: Way) -> Finding:
    """Whether whoever is on the way can read along."""
    if way.has_tls or not way.leaves_machine:
        said = "TLS" if way.has_tls else "no TLS; nothing leaves this machine"
        return Finding(subject="encryption", ok=True, said=said)
    return Finding(
        subject="encryption",
        ok=False,
        said="no TLS, and it is not on this machine: texts and the password can be read on the way",
        advice="set `tls-port` in redis.conf and begin the URL with rediss://, or go through a tunnel",
    )


Settings = Mapping[str, str]
"""What CONFIG GET says; empty where the user may not ask."""

ASKED = ("aof-load-truncated", "appendfsync")
"""The settings that are asked for."""


def torn_log(info: Mapping[str, str], settings: Settings) -> Finding:
    """Whether a log that a crash tore is loaded as it is."""
    if info.get("aof_enabled") != "1":
        return Finding(subject="torn log", ok=True, said="there is no append-only file to tear")
    match settings.get("aof-load-truncated"):
        case "no":
            said = "aof-load-truncated no: a torn append-only file is mended before it is served"
            return Finding(subject="torn log", ok=True, said=said)
        case "yes":
            return Finding(subject="torn log", ok=False, said=TORN_LOG, advice=UNTEAR)
    return Finding(
        subject="torn log",
        ok=True,
        note=True,
        said="this user may not ask whether a torn append-only file is loaded as it is",
        advice="look yourself: fdstore redis-cli CONFIG GET aof-load-truncated; it should be no",
    )


TORN_LOG = (
    "aof-load-truncated is yes: after a crash that tears the append-only file, the last writes are lost "
    "without a word, and half of one comes back at the start after next"
)
UNTEAR = (
    "fdstore redis-cli CONFIG SET aof-load-truncated no, and the same in redis.conf; "
    "a torn log is then mended by hand, with redis-check-aof --fix"
)


def log_writes(info: Mapping[str, str], settings: Settings) -> Finding:
    """How much a power cut takes of what was acknowledged."""
    if info.get("aof_enabled") != "1":
        return Finding(subject="fsync", ok=True, said="there is no append-only file to write")
    match settings.get("appendfsync"):
        case "always":
            said = "appendfsync always: a power cut takes nothing that was acknowledged"
            return Finding(subject="fsync", ok=True, said=said)
        case "everysec":
            return Finding(
                subject="fsync",
                ok=True,
                note=True,
                said="appendfsync everysec: a power cut takes up to a second of writes, a crash nothing",
                advice="set appendfsync always if that is too much; writes then wait for the disk",
            )
        case "no":
            return Finding(
                subject="fsync",
                ok=False,
                said="appendfsync no: a power cut takes what the system had not written yet, up to 30 s",
                advice="fdstore redis-cli CONFIG SET appendfsync everysec, and the same in redis.conf",
            )
    said = "this user may not ask how often the append-only file reaches the disk"
    advice = "look yourself: fdstore redis-cli CONFIG GET appendfsync; everysec or always"
    return Finding(subject="fsync", ok=True, note=True, said=said, advice=advice)


def memory_limit(info: Mapping[str, str]) -> Finding:
    """Whether Redis stops before the machine is full."""
    limit = int(info.get("maxmemory", 0))
    if limit:
        return Finding(subject="memory limit", ok=True, said=f"{limit / 1e6:.1f} MB")
    return Finding(
        subject="memory limit",
        ok=True,
        note=True,
        said="none: when the machine's memory is full, the system ends Redis, or something else",
        advice="fdstore redis-cli CONFIG SET maxmemory 2gb (half of the memory), and the same in redis.conf",
    )


FLAW = "CVE-2025-49844"

_FIXED: dict[str, tuple[tuple[int, ...], ...]] = {
    "redis": ((6, 2, 20), (7, 2, 11), (7, 4, 6), (8, 0, 4), (8, 2, 2)),
    "valkey": ((7, 2, 11), (8, 0, 6), (8, 1, 4)),
}
"""The first release of each line without the flaws in Lua of October 2025: CVE-2025-49844 (a script runs
code in the server), -46817, -46818 and -46819. Those of October 2024 (CVE-2024-31449, mended in 6.2.16, 7.2.6
and 7.4.1) are gone there too. A line that is older than the last one here and not named (7.0) got no fix;
newer lines began with it.

From the announcements of the releases: github.com/docker-library/official-images/pull/20011 for Redis,
github.com/valkey-io/valkey/releases/tag/8.1.4 and those of 8.0.6 and 7.2.11 for Valkey; last compared in
October 2025. What was found since is not in here."""


def known_flaws(info: Mapping[str, str], way: Way) -> Finding:
    """Whether the server's version is one in which a script takes over the server."""
    name = "valkey" if "valkey_version" in info else "redis"
    said = info.get("valkey_version") or info.get("redis_version", "0")
    if not is_flawed(name, said):
        known = f"{name} {said} has none of those in Lua that are known here"
        return Finding(subject="known flaws", ok=True, said=known)
    line = said.rpartition(".")[0]
    fixed = next((each for each in _FIXED[name] if each[:2] == _numbers(said)[:2]), None)
    upgrade = ".".join(map(str, fixed or _FIXED[name][-1]))
    return Finding(
        subject="known flaws",
        ok=not way.leaves_machine,
        note=not way.leaves_machine,
        said=f"{name} {said}: whoever may run scripts can take over the server ({FLAW})"
        + ("" if fixed else f"; {line} got no fix"),
        advice=f"upgrade to {upgrade} or later, unless your distribution has backported the fix",
    )


def is_flawed(name: str, version: str) -> bool:
    """Whether a version is from before the fixes.

    >>> is_flawed("redis", "7.2.10"), is_flawed("redis", "7.2.11"), is_flawed("redis", "7.0.15")
    (True, False, True)
    >>> is_flawed("redis", "8.4.0"), is_flawed("valkey", "8.1.3")
    (False, True)
    """
    found = _numbers(version)
    for fixed in _FIXED[name]:
        if fixed[:2] == found[:2]:
            return found < fixed
    return found < _FIXED[name][-1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdecimal())
