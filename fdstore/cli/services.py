"""The verbs up, down and status, for the background services.

A Redis given by URL is managed by the user; fdstore manages only the background worker for it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.control import cancel_and_wake
from fdstore.cli.limits import format_budget
from fdstore.cli.session import CliSession, verb, where_else
from fdstore.model.records import ProcessRecord, Record, TokenUsage, Unreadable
from fdstore.setup.optional_packages import require
from fdstore.store.doctor.safety import Finding
from fdstore.store.trees.limit_usage import LimitStatus, budgets_of_tree
from fdstore.text.quantities import duration, format_count, format_size

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.local.redis_server import ServerStatus


MAX_BUDGETS = 5
"""The maximum number of budgets of trees to list."""

MAX_WAITING = 5
"""The maximum number of waiting processes to name."""


class StoreStatus(Record, frozen=True, kw_only=True):
    """A reachable store and its data.

    For a Cluster, memory and limits are sums over the reachable `primaries`. `contents` and `bytes` (UTF-8)
    count all trees, of which `cold_bytes` are in the object store. `commands` is the sandbox of each worker,
    `no_agents` the reason why a worker runs no agents ("" if it does). `ceilings` are those that the operator
    set, `tokens` what models have used, by tree, `token_counts` the same by kind (for --json alone), and
    `budgets` those of trees that have not ended, with what is used. `health` says how workers and store get
    on, problems first. `unreadable` lists damaged records, which are not counted. `elsewhere` says which
    other prefix has trees, if this one has none.
    """

    url: str
    kind: str
    primaries: int
    unreachable: list[str]
    software: str
    version: str
    uptime_s: int
    used_memory_bytes: int
    maxmemory_bytes: int
    aof_enabled: bool
    trees: int
    processes: int
    live: int
    contents: int
    bytes: int
    cold_bytes: int
    workers: list[str]
    commands: dict[str, str]
    no_agents: dict[str, str]
    ceilings: dict[str, str]
    tokens: dict[str, int]
    token_counts: dict[str, TokenUsage]
    budgets: list[LimitStatus]
    health: list[Finding]
    unreadable: list[Unreadable]
    elsewhere: str | None = None


@verb
@click.option(
    *("-c", "--concurrency"),
    type=click.IntRange(1, 10_000),
    default=8,
    metavar="N",
    show_default=True,
    help="Number of agents that run at the same time, if a worker is started.",
)
@click.option("--drop", is_flag=True, help="First cancel the processes that wait for a worker.")
def up(session: CliSession, concurrency: int, drop: bool) -> None:
    """Start a background worker, and for the embedded store also its server, unless they are running.

    With --url or $FDSTORE_URL the worker serves that store, and its programs may not call Python functions or
    run commands: for those, run `fdstore worker` with the options that allow them.

    The worker takes up processes that wait for one since they were started, however long ago; --drop cancels
    them instead.
    """
    from fdstore.agents.runtime.local_worker import background_worker, renew_if_idle
    from fdstore.errors import StoreReadOnly
    from fdstore.store.views import gauges

    require()
    server = None
    if not session.chosen_url:
        embedded = session.embedded_server()
        embedded.ensure()
        server = embedded.status()
    with session.store() as store:
        background = background_worker(store.url, store.prefix)
        renew_if_idle(store, background, for_functions=False, say=output.say_of_us)
        refuses = "" if background.pid() else store.run(gauges.read_gauges(store.prefix)).refuses
        if refuses:  # a worker would wait in vain
            raise StoreReadOnly(refuses)
        waiting = [] if background.pid() else waiting_for_worker(store)
        if drop:
            for each in waiting:
                cancel_and_wake(store, each.id)
        worker = background.ensure(concurrency)
        where = store.where
    if session.as_json:
        found = {"dropped" if drop else "taken_up": [each.id for each in waiting]}
        output.document({"server": server, "store": where, "worker": {"pid": worker}, **found})
        return
    rows = server_facts(server) if server else [("store", where)]
    rows += [("worker", f"running, pid {worker}"), ("log", str(background.log))]
    rows.append(("inspector", "`fdstore ui --open` shows it in a browser"))
    output.facts([*rows, *waiting_facts(waiting, dropped=drop)])


@verb
def down(session: CliSession) -> None:
    """Stop the background worker and the embedded server. The data is kept, and the next command starts the
    server again. With --url or $FDSTORE_URL only the background worker for that store is stopped."""
    from fdstore.agents.runtime.local_worker import background_worker
    from fdstore.local.worker import stop_embedded_workers
    from fdstore.setup import settings

    server = None
    if url := session.chosen_url:
        worker = background_worker(url, session.chosen_prefix).stop()
    else:
        worker = stop_embedded_workers(settings.read().data_dir)
        server = session.embedded_server().stop()
    if session.as_json:
        stopped = None if server is None else {"stopped": server}
        output.document({"server": stopped, "worker": {"stopped": worker}})
        return
    results = {True: "stopped", False: "was not running"}
    rows = [("worker", results[worker])]
    if server is not None:
        rows.append(("server", results[server]))
    output.facts(rows)


@verb
def status(session: CliSession) -> None:
    """Show the services and the stored data, without starting anything: problems first, and at the end how
    many there are. `fdstore doctor` checks the settings, too.
    """
    from fdstore.agents.runtime.local_worker import background_worker

    server = session.embedded_server().status()
    url = session.chosen_url
    ready = server.running and server.version is not None
    store = store_status(session, url or server.url) if url or ready else None
    worker = background_worker(url or server.url, session.chosen_prefix).pid()
    if session.as_json:
        output.document({"store": store, "server": server, "worker": {"pid": worker}})
        return
    rows = store_facts(store) if url and store else server_facts(server)
    if store is None:
        output.facts(rows)
        return
    problems, notes = problem_facts(store.health), note_facts(store.health)
    output.facts([*problems, *rows, *held_facts(store), *notes])
    output.report_unreadable(store.unreadable, as_json=False)
    output.verdict(*count_of(len(problems), len(notes)))


def waiting_for_worker(store: Store) -> list[ProcessRecord]:
    """Return the processes that no worker has claimed, the oldest first."""
    members = [member for tree in store.trees() if tree.live for member in store.tree(tree.id).members]
    return sorted(
        (each for each in members if each.state == "ready"), key=lambda each: each.started_at or 0.0
    )


def waiting_facts(waiting: list[ProcessRecord], *, dropped: bool) -> list[tuple[str, str]]:
    """Format the processes that waited when a worker was started."""
    if not waiting:
        return []
    named = ", ".join(each.id for each in waiting[:MAX_WAITING])
    more = f" and {len(waiting) - MAX_WAITING} more" if len(waiting) > MAX_WAITING else ""
    if dropped:
        return [("dropped", named + more)]
    waited = duration(time.time() - (waiting[0].started_at or time.time()))
    told = f"{named}{more}, which waited for a worker, up to {waited}; `fdstore kill` drops one"
    return [("takes up", told)]


def store_status(session: CliSession, url: str) -> StoreStatus:
    """Return the status of the store at `url`. Raises `StoreUnavailable`."""
    from fdstore.errors import DamagedRecord
    from fdstore.store.doctor.check import primaries
    from fdstore.store.processes import process_records
    from fdstore.store.record_format import unreadable
    from fdstore.store.trees import ceilings
    from fdstore.store.views.health import read_cold_place, read_health
    from fdstore.store.views.worker_registry import RegisteredWorker, read_workers
    from fdstore.wire.server_info import software, software_version
    from fdstore.wire.store_url import parse_store_url

    with session.store(url, use="look") as store:
        nodes = store.run(primaries("server", "memory", "persistence"))
        infos = [each.info for each in nodes if not each.error]
        survey = store.run(process_records.survey(store.prefix, with_processes=session.as_json))
        trees, damaged = survey.trees, survey.unreadable
        workers: list[RegisteredWorker] = []
        try:
            workers = store.run(read_workers(store.prefix)).alive
        except DamagedRecord as error:
            damaged.append(unreadable(error))
        return StoreStatus(
            url=store.where,
            kind=parse_store_url(url).kind,
            primaries=len(nodes),
            unreachable=[each.address for each in nodes if each.error],
            software=software(infos[0]),
            version=software_version(infos[0]),
            uptime_s=min(int(info["uptime_in_seconds"]) for info in infos),
            used_memory_bytes=sum(int(info["used_memory"]) for info in infos),
            maxmemory_bytes=sum(int(info.get("maxmemory", 0)) for info in infos),
            aof_enabled=all(info.get("aof_enabled") == "1" for info in infos),
            trees=len(trees),
            processes=sum(tree.processes for tree in trees),
            live=sum(tree.live for tree in trees),
            contents=sum(tree.fds for tree in trees),
            bytes=sum(tree.bytes for tree in trees),
            cold_bytes=sum(tree.cold_bytes for tree in trees),
            workers=[each.name for each in workers],
            commands={each.name: each.commands for each in workers},
            no_agents={each.name: each.no_agents for each in workers},
            ceilings=store.run(ceilings.written(store.prefix)),
            tokens={tree.id: tree.all_tokens for tree in trees if tree.all_tokens},
            token_counts={tree.id: tree.usage for tree in trees if tree.usage.tokens},
            budgets=[each for tree in trees if tree.live for each in budgets_of_tree(tree)],
            health=[*store.run(read_health(store.prefix)), *store.run(read_cold_place(store.prefix))],
            unreadable=damaged,
            elsewhere=None if trees else where_else(store),
        )


def server_facts(server: ServerStatus) -> list[tuple[str, str]]:
    """Format the status of the embedded server."""
    if not server.running:
        return [
            ("server", "not running; `fdstore up` or the first command starts it"),
            ("data", server.data_dir),
        ]
    if server.version is None:
        state = "loading its data" if server.loading else "running, but it does not answer"
        return [("server", f"{state}, pid {server.pid}"), ("url", server.url), ("data", server.data_dir)]
    return [
        (
            "server",
            f"running, {server.software} {server.version}, pid {server.pid}, "
            f"up {duration(server.uptime_s or 0)}",
        ),
        ("url", server.url),
        ("program", server.program or "unknown"),
        ("data", f"{server.data_dir} ({'append-only file on' if server.aof_enabled else 'NOT ON DISK'})"),
        ("memory", format_size(server.used_memory_bytes or 0)),
    ]


def store_facts(store: StoreStatus) -> list[tuple[str, str]]:
    """Format the status of a store given by URL."""
    kind = {
        "redis": "one Redis",
        "sentinel": "the master that Sentinels report",
        "cluster": f"a Redis Cluster of {format_count(store.primaries, 'primary', 'primaries')}",
    }[store.kind]
    if store.unreachable:
        kind += f" ({', '.join(store.unreachable)} cannot be reached)"
    limit = f" of {format_size(store.maxmemory_bytes)}" if store.maxmemory_bytes else ""
    return [
        ("store", f"answers, {store.software} {store.version}, up {duration(store.uptime_s)}"),
        ("kind", kind),
        ("url", store.url),
        (
            "disk",
            "append-only file on" if store.aof_enabled else "append-only file OFF; see `fdstore doctor`",
        ),
        ("memory", f"{format_size(store.used_memory_bytes)}{limit}"),
    ]


def held_facts(store: StoreStatus) -> list[tuple[str, str]]:
    """Format the data and the workers of a store."""
    processes = f"{format_count(store.processes, 'process', 'processes')} ({store.live} not ended)"
    cold = f" ({format_size(store.cold_bytes)} cold)" if store.cold_bytes else ""
    contents = f"{format_count(store.contents, 'content')} with {format_size(store.bytes)}{cold}"
    workers = ", ".join(store.workers) or "none is running; start one with `fdstore up` or `fdstore worker`"
    rows = [("holds", f"{format_count(store.trees, 'tree')}, {processes}, {contents}"), ("workers", workers)]
    if store.elsewhere:
        rows.append(("elsewhere", store.elsewhere))
    rows += [("agents", f"not run{where}: {reason}") for where, reason in _by_worker(store.no_agents)]
    for where, sentence in _by_worker(store.commands):
        rows.append(("commands", f"{where.strip()}: {sentence}" if where else sentence))
    if store.ceilings:
        rows.append(("ceilings", ", ".join(f"{name} {value}" for name, value in store.ceilings.items())))
    rows += [("budget", format_budget(each)) for each in store.budgets[:MAX_BUDGETS]]
    if len(store.budgets) > MAX_BUDGETS:
        rows.append(("", f"and {len(store.budgets) - MAX_BUDGETS} more; `fdstore limits show TREE`"))
    if all(each.ok and not each.note for each in store.health):
        rows.append(("health", "; ".join(each.said for each in store.health)))
    return rows


def problem_facts(findings: list[Finding]) -> list[tuple[str, str]]:
    """Format the problems of the workers and the store."""
    return [("PROBLEM", _in_words(each)) for each in findings if not each.ok]


def note_facts(findings: list[Finding]) -> list[tuple[str, str]]:
    """Format what may be improved."""
    return [("note", _in_words(each)) for each in findings if each.ok and each.note]


def _in_words(finding: Finding) -> str:
    return f"{finding.subject}: {finding.said}" + (f"; {finding.advice}" if finding.advice else "")


def count_of(problems: int, notes: int) -> tuple[str, str]:
    """Return how many problems there are, and the style of that.

    >>> count_of(2, 1), count_of(0, 0)
    (('2 problems, 1 note', 'bad'), ('no problems', 'good'))
    """
    counted = format_count(problems, "problem") if problems else "no problems"
    return counted + (f", {format_count(notes, 'note')}" if notes else ""), "bad" if problems else "good"


def _by_worker(sentences: dict[str, str]) -> list[tuple[str, str]]:
    """Return each distinct sentence with its workers ("" for all); usually there is only one."""
    workers: dict[str, list[str]] = {}
    for worker, sentence in sentences.items():
        if sentence:
            workers.setdefault(sentence, []).append(worker)
    return [
        ("" if len(names) == len(sentences) else f" at {', '.join(names)}", sentence)
        for sentence, names in workers.items()
    ]
