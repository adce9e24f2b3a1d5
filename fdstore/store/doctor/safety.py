"""Check how safely a Redis is configured and reached, for `fdstore doctor`.

A problem can lose content or let others read it: a torn log that is loaded without repair, no log, a network
without password or TLS, a server vulnerability that remote clients can exploit. A note is a fact that people
should know but may accept: no memory limit, losing up to a second of writes in a power cut, a vulnerability
that only users of this machine can exploit.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple

from fdstore.model.records import Record
from fdstore.text.quantities import format_size
from fdstore.wire.server_info import software, software_version
from fdstore.wire.store_url import StoreUrl


class Finding(Record, frozen=True, kw_only=True):
    """The result of one check: whether it passed, what was found (`said`), and what to do about it. A `note`
    passed, but may be improved."""

    subject: str
    ok: bool
    said: str
    advice: str = ""
    note: bool = False


def well(subject: str, said: str) -> Finding:
    """Return the finding of a check that passed."""
    return Finding(subject=subject, ok=True, said=said)


def note(subject: str, said: str, advice: str) -> Finding:
    """Return the finding of a check that passed, and of what may be improved."""
    return Finding(subject=subject, ok=True, note=True, said=said, advice=advice)


def problem(subject: str, said: str, advice: str) -> Finding:
    """Return the finding of a check that failed."""
    return Finding(subject=subject, ok=False, said=said, advice=advice)


class Way(NamedTuple):
    """The connection to a store: whether traffic leaves this machine, and how it is protected. `unchecked` is
    the option of the URL by which the certificate, or its name, is not checked."""

    leaves_machine: bool
    has_password: bool
    has_tls: bool
    unchecked: str = ""


def way_to(place: StoreUrl) -> Way:
    """Return how a store is reached.

    >>> from fdstore.wire.store_url import parse_store_url
    >>> way_to(parse_store_url("rediss://:secret@db.example"))
    Way(leaves_machine=True, has_password=True, has_tls=True, unchecked='')
    """
    options = place.options
    unchecked = ""
    if options.get("ssl_cert_reqs") == "none":
        unchecked = "ssl_cert_reqs=none"
    elif options.get("ssl_check_hostname") is False:
        unchecked = "ssl_check_hostname=false"
    hosts = [host for host, _ in place.hosts] or [options.get("host", "localhost")]
    return Way(
        leaves_machine="path" not in options and not all(map(_is_loopback, hosts)),
        has_password=bool(options.get("password")),
        has_tls=place.url.startswith("rediss://"),
        unchecked=unchecked,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host in ("localhost", "localhost.localdomain", "ip6-localhost")


def password(way: Way) -> Finding:
    """Check that a network store requires a password."""
    if way.has_password or not way.leaves_machine:
        said = "the URL has a password" if way.has_password else "no password; it is on this machine"
        return well("password", said)
    return problem(
        "password",
        "the URL has none and is not of this machine: anyone who reaches the server can change all data",
        "set `requirepass`, or an aclfile such as deploy/users.acl, and put the password in the URL",
    )


def encryption(way: Way) -> Finding:
    """Check that traffic over a network is encrypted, and that the server proves who it is."""
    if way.has_tls and way.unchecked:
        said = f"TLS, but the certificate is not checked ({way.unchecked})"
        if not way.leaves_machine:
            return well("encryption", f"{said}; nothing leaves this machine")
        return problem(
            "encryption",
            f"{said}: whoever is in between can read texts and the password",
            f"leave {way.unchecked} out of the URL, and name the server's CA with ssl_ca_certs=FILE",
        )
    if way.has_tls or not way.leaves_machine:
        said = "TLS" if way.has_tls else "no TLS; nothing leaves this machine"
        return well("encryption", said)
    return problem(
        "encryption",
        "no TLS, and it is not on this machine: texts and the password can be read in transit",
        "set `tls-port` in redis.conf and begin the URL with rediss://, or use a tunnel",
    )


Settings = Mapping[str, str]
"""Settings from CONFIG GET; empty if the user may not read them."""

ASKED = ("aof-load-truncated", "appendfsync")
"""The names of the settings that the checks need."""


def torn_log(info: Mapping[str, str], settings: Settings) -> Finding:
    """Check that Redis does not load a torn log without repair."""
    if info.get("aof_enabled") != "1":
        return well("torn log", "there is no append-only file to tear")
    match settings.get("aof-load-truncated"):
        case "no":
            said = "aof-load-truncated no: a torn append-only file is repaired before Redis serves it"
            return well("torn log", said)
        case "yes":
            return problem("torn log", TORN_LOG, UNTEAR)
    return note(
        "torn log",
        "this user may not read whether a torn append-only file is loaded without repair",
        "check yourself: fdstore redis-cli CONFIG GET aof-load-truncated; it should be no",
    )


TORN_LOG = (
    "aof-load-truncated is yes: after a crash that tears the append-only file, the last writes are silently "
    "lost, and half of one reappears at the second restart"
)
UNTEAR = (
    "fdstore redis-cli CONFIG SET aof-load-truncated no, and the same in redis.conf; "
    "then repair a torn log by hand, with redis-check-aof --fix"
)


def log_writes(info: Mapping[str, str], settings: Settings) -> Finding:
    """Check how many acknowledged writes a power cut can lose."""
    if info.get("aof_enabled") != "1":
        return well("fsync", "there is no append-only file to write")
    match settings.get("appendfsync"):
        case "always":
            said = "appendfsync always: a power cut loses no acknowledged write"
            return well("fsync", said)
        case "everysec":
            return note(
                "fsync",
                "appendfsync everysec: a power cut loses up to a second of writes, a crash none",
                "set appendfsync always if that is too much; writes then wait for the disk",
            )
        case "no":
            return problem(
                "fsync",
                "appendfsync no: a power cut loses up to 30 s of writes",
                "fdstore redis-cli CONFIG SET appendfsync everysec, and the same in redis.conf",
            )
    said = "this user may not read how often the append-only file is synced to disk"
    advice = "check yourself: fdstore redis-cli CONFIG GET appendfsync; everysec or always"
    return note("fsync", said, advice)


def memory_limit(info: Mapping[str, str]) -> Finding:
    """Check that Redis has a memory limit."""
    limit = int(info.get("maxmemory", 0))
    if limit:
        return well("memory limit", format_size(limit))
    return note(
        "memory limit",
        "none: when the machine's memory is full, the system kills Redis or another process",
        "fdstore redis-cli CONFIG SET maxmemory 2gb (half of the memory), and the same in redis.conf",
    )


FLAW = "CVE-2025-49844"

_FIXED: dict[str, tuple[tuple[int, ...], ...]] = {
    "redis": ((6, 2, 20), (7, 2, 11), (7, 4, 6), (8, 0, 4), (8, 2, 2)),
    "valkey": ((7, 2, 11), (8, 0, 6), (8, 1, 4)),
}
"""The first release of each line without the Lua vulnerabilities of October 2025: CVE-2025-49844 (a script
runs code in the server), -46817, -46818 and -46819. Those of October 2024 (CVE-2024-31449, fixed in 6.2.16,
7.2.6 and 7.4.1) are fixed there too. A line older than the last one listed and not listed itself (7.0) got no
fix; newer lines include it from the start.

Sources: the release announcements, github.com/docker-library/official-images/pull/20011 for Redis,
github.com/valkey-io/valkey/releases/tag/8.1.4 and those of 8.0.6 and 7.2.11 for Valkey; last compared in
October 2025. Later vulnerabilities are not covered."""


def known_flaws(info: Mapping[str, str], way: Way) -> Finding:
    """Check for server versions in which a script can take over the server."""
    name, release = software(info).lower(), software_version(info) or "0"
    if not is_flawed(name, release):
        known = f"{name} {release} has none of the known vulnerabilities in Lua"
        return well("known flaws", known)
    line = release.rpartition(".")[0]
    fixed = next((each for each in _FIXED[name] if each[:2] == _numbers(release)[:2]), None)
    upgrade = ".".join(map(str, fixed or _FIXED[name][-1]))
    return Finding(
        subject="known flaws",
        ok=not way.leaves_machine,
        note=not way.leaves_machine,
        said=f"{name} {release}: any client that may run scripts can take over the server ({FLAW})"
        + ("" if fixed else f"; {line} got no fix"),
        advice=f"upgrade to {upgrade} or later, unless your distribution has backported the fix",
    )


def is_flawed(name: str, version: str) -> bool:
    """Return whether a version predates the fixes.

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
