"""Check that a Redis is safe for content: on connecting, in each round of the workers' sweep, and in detail
for `fdstore doctor`. Scripts that create something also detect an eviction policy that is set later
(`unsafe` in lua/common.lua)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from fdstore.errors import FDStoreError, InvalidArgument, UnsafeStore
from fdstore.setup.settings import MIN_REDIS_VERSION
from fdstore.store.doctor import safety
from fdstore.store.doctor.safety import Finding, problem, well
from fdstore.text.quantities import format_size
from fdstore.wire.operation import Batch, Everywhere, Operation
from fdstore.wire.scripts import text
from fdstore.wire.server_info import NEARLY_FULL, is_cluster_node, software, software_version
from fdstore.wire.store_url import StoreUrl

log = logging.getLogger("fdstore")


class Primary(msgspec.Struct, frozen=True):
    """One server that holds content: its address, and its INFO or the error of asking for it. `settings` are
    empty if they were not asked for, or this user may not read them."""

    address: str
    info: dict[str, str]
    settings: dict[str, str]
    error: FDStoreError | None = None


def primaries(*sections: str, with_settings: bool = False) -> Operation[list[Primary]]:
    """Return all servers that hold content (one, except in a Cluster), with these sections of INFO and, if
    asked for and allowed, their settings. One round trip for each. Raises `StoreUnavailable` if none can be
    reached."""
    settings: Batch = [("CONFIG", "GET", name) for name in safety.ASKED] if with_settings else []
    found = yield Everywhere([("INFO", section) for section in sections], settings)
    errors = [replies for _, replies in found if isinstance(replies, FDStoreError)]
    if len(errors) == len(found):
        raise errors[0]
    return [
        Primary(address, {}, {}, replies)
        if isinstance(replies, FDStoreError)
        else Primary(address, _read(replies[: len(sections)]), _pairs(replies[len(sections) :]))
        for address, replies in found
    ]


def _read(replies: list[bytes]) -> dict[str, str]:
    # a server tells its paths, which need not be UTF-8
    texts = [reply.decode("utf-8", "backslashreplace") for reply in replies]
    return dict(line.split(":", 1) for each in texts for line in each.splitlines() if ":" in line)


def server_info(*sections: str) -> Operation[dict[str, str]]:
    """Return these sections of INFO of the first reachable server."""
    servers = yield from primaries(*sections)
    return next(each.info for each in servers if not each.error)


def check_server(where: str, *, safe: bool = True) -> Operation[bool]:
    """Check every reachable server, and return whether they have any scripts. One round trip for each. With
    `safe=False`, check only that one answers.

    Raises `UnsafeStore` when one is older than 6.2 or evicts keys at its memory limit, `InvalidArgument`
    when a URL for one Redis names a node of a Cluster.
    """
    is_new = safe and where not in _warned
    servers = yield from primaries("server", "memory", "persistence", with_settings=is_new)
    for each in servers:
        if each.error:
            continue
        for finding in (version(each.info), eviction(each.info)):
            if safe and not finding.ok:
                raise UnsafeStore(where, f"{finding.said}; {finding.advice}")
        if is_cluster_node(each.info) and "+cluster:" not in where:
            raise InvalidArgument("url", f"{where} is a node of a Redis Cluster; use redis+cluster:// for it")
    if safe:
        _warn_of_torn_logs(where, servers)
    return all(each.info.get("number_of_cached_scripts") != "0" for each in servers if not each.error)


_warned: set[str] = set()

TORN_LOGS = "%s can lose writes in a crash; CONFIG SET aof-load-truncated no (fdstore doctor says why)"


def _warn_of_torn_logs(where: str, servers: list[Primary]) -> None:
    """Log a warning if Redis loads a torn log without repair, once for each store in this process. The
    commands show it once a day; doctor says more, always."""
    if where in _warned or not any(each.info.get("aof_enabled") == "1" for each in servers):
        return
    _warned.add(where)
    for each in servers:
        found = safety.torn_log(each.info, each.settings)
        if not found.ok:
            at = f"{where} ({each.address})" if len(servers) > 1 else where
            log.warning(TORN_LOGS, at, extra={"once_a_day": f"torn log {at}"})


def _pairs(replies: list[list[bytes] | None]) -> dict[str, str]:
    return {text(pair[0]): text(pair[1]) for pair in replies if pair}


def examine(place: StoreUrl) -> Operation[list[Finding]]:
    """Return all findings about the servers and the connection to them. One round trip for each."""
    servers = yield from primaries("server", "memory", "persistence", "replication", with_settings=True)
    way = safety.way_to(place)
    return [safety.password(way), safety.encryption(way), *judge_servers(servers, way)]


def judge_servers(servers: list[Primary], way: safety.Way) -> list[Finding]:
    """Return all findings about some servers that are reached in a way."""
    found: list[Finding] = []
    for each in servers:
        of_one = _findings(each, way)
        if len(servers) > 1:
            of_one = [
                msgspec.structs.replace(finding, subject=f"{finding.subject} at {each.address}")
                for finding in of_one
            ]
        found += of_one
    return found


def _findings(server: Primary, way: safety.Way) -> list[Finding]:
    if server.error:
        return [problem("server", str(server.error), "start it, or fail over")]
    info, settings = server.info, server.settings
    return [
        *(version(info), safety.known_flaws(info, way), eviction(info), memory(info)),
        *(safety.memory_limit(info), durability(info), safety.torn_log(info, settings)),
        *(safety.log_writes(info, settings), disk(info), role(info)),
    ]


def version(info: Mapping[str, str]) -> Finding:
    """Check the version of the server."""
    release = software_version(info) or "0"
    new_enough = tuple(int(part) for part in release.split(".")[:2]) >= MIN_REDIS_VERSION
    oldest = ".".join(map(str, MIN_REDIS_VERSION))
    return Finding(
        subject="version",
        ok=new_enough,
        said=f"{software(info)} {release}"
        if new_enough
        else f"it is version {release}, and {oldest} or later is needed",
        advice="" if new_enough else "upgrade it, or use another Redis",
    )


def eviction(info: Mapping[str, str]) -> Finding:
    """Check that Redis evicts no keys."""
    policy = info.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return well("eviction", "noeviction: content is never dropped")
    return problem(
        "eviction",
        f"its maxmemory-policy is {policy}, which drops content when memory is short",
        "set it with: fdstore redis-cli CONFIG SET maxmemory-policy noeviction",
    )


def memory(info: Mapping[str, str]) -> Finding:
    """Check how full the memory is."""
    used, limit = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    said = f"{format_size(used)} used" + (f" of {format_size(limit)}" if limit else ", no limit set")
    if limit and used > limit * NEARLY_FULL:
        advice = (
            "writes fail when it is full: `fdstore du` shows the largest trees; drop some, or raise maxmemory"
        )
        return problem("memory", said, advice)
    return well("memory", said)


def durability(info: Mapping[str, str]) -> Finding:
    """Check that the append-only file is on."""
    if info.get("aof_enabled") == "1":
        return well("durability", "the append-only file is on")
    return problem(
        "durability",
        "the append-only file is off: a crash loses all writes since the last snapshot",
        "turn it on with: fdstore redis-cli CONFIG SET appendonly yes; and put it into redis.conf",
    )


def disk(info: Mapping[str, str]) -> Finding:
    """Check that the last writes of the append-only file succeeded."""
    failed = [
        what
        for what, field in (("append", "aof_last_write_status"), ("rewrite", "aof_last_bgrewrite_status"))
        if info.get(field, "ok") != "ok"
    ]
    if not failed:
        return well("disk", "its last writes to disk succeeded")
    return problem(
        "disk",
        f"its last {' and '.join(failed)} of the append-only file failed",
        "check its log and the free space of its disk",
    )


def role(info: Mapping[str, str]) -> Finding:
    """Check that the server is a primary."""
    if info.get("role", "master") == "master":
        return well("role", "a primary: it accepts writes")
    return problem(
        "role",
        f"a replica of {info.get('master_host')}:{info.get('master_port')}: it accepts no writes",
        "point FDSTORE_URL at the primary",
    )


def why_no_writes(info: Mapping[str, str]) -> str:
    """Return why the server takes no writes, as far as its INFO says; "" if it does. After a failed rewrite
    of the log it still takes them.

    >>> why_no_writes({"role": "slave", "master_host": "10.0.0.2", "master_port": "6379"})
    'a replica of 10.0.0.2:6379: it accepts no writes'
    """
    if not (found := role(info)).ok:
        return found.said
    return "" if info.get("aof_last_write_status", "ok") == "ok" else disk(info).said
