"""The page of the store's health: what `fdstore doctor` finds in Redis, its memory, the queue."""

from __future__ import annotations

import msgspec

from fdstore.inspector.web.page import PageRequest, WebPage
from fdstore.inspector.web.workers import load as load_workers
from fdstore.model.records import Record
from fdstore.store.doctor.check import examine, primaries
from fdstore.store.doctor.safety import Finding
from fdstore.store.trees.ceilings import written
from fdstore.store.views.health import beside, health_facts
from fdstore.store.views.health_rule import judge
from fdstore.store.views.workers_now import WorkersNow
from fdstore.wire.server_info import software, software_version
from fdstore.wire.store_url import parse_store_url


class ServerFacts(Record, frozen=True, kw_only=True):
    """One server that holds content, in the words of its INFO; `error` says why it does not answer."""

    address: str
    error: str = ""
    software: str = ""
    version: str = ""
    uptime_s: int = 0
    used_bytes: int = 0
    peak_bytes: int = 0
    limit_bytes: int = 0
    fragmentation: float = 0.0
    clients: int = 0
    commands_per_s: int = 0


class HealthPage(Record, frozen=True, kw_only=True):
    """The findings, problems first, and the servers. `problems` and `notes` count the findings."""

    kind: str
    findings: list[Finding]
    problems: int
    notes: int
    servers: list[ServerFacts]
    ceilings: dict[str, str]
    workers: WorkersNow
    now_s: float


async def load(request: PageRequest) -> HealthPage:
    """Examine the servers of the store."""
    store, url = request.store, parse_store_url(request.store.url)
    workers = await load_workers(request)
    examined = await store.run(examine(url))
    judged = judge(await store.run(health_facts(store.prefix, workers)))
    findings = sorted([*examined, *beside(judged, examined)], key=lambda each: (each.ok, not each.note))
    found = await store.run(primaries("server", "memory", "clients", "stats"))
    return HealthPage(
        kind=url.kind,
        findings=findings,
        problems=sum(not each.ok for each in findings),
        notes=sum(each.ok and each.note for each in findings),
        servers=[_server(each.address, each.info, each.error) for each in found],
        ceilings=await store.run(written(store.prefix)),
        workers=msgspec.structs.replace(workers, now_s=0.0),
        now_s=workers.now_s,
    )


def _server(address: str, info: dict[str, str], error: Exception | None) -> ServerFacts:
    def number(name: str) -> int:
        value = info.get(name, "0")
        return int(value) if value.isdecimal() and len(value) < 17 else 0

    if error is not None:
        return ServerFacts(address=address, error=str(error))
    ratio = info.get("mem_fragmentation_ratio", "0")
    return ServerFacts(
        address=address,
        software=software(info),
        version=software_version(info),
        uptime_s=number("uptime_in_seconds"),
        used_bytes=number("used_memory"),
        peak_bytes=number("used_memory_peak"),
        limit_bytes=number("maxmemory"),
        fragmentation=float(ratio) if ratio.replace(".", "", 1).isdecimal() else 0.0,
        clients=number("connected_clients"),
        commands_per_s=number("instantaneous_ops_per_sec"),
    )


PAGES = [WebPage("/health", "health.html", load, live_s=5.0)]
