"""The activity in a store: its live trees and their processes, the open streams, the workers.

Nothing is scanned: the index of trees names those used last, each tree knows its processes and its open
streams. Each request reads a bounded number of them, in four round trips. `LiveSnapshot` says what was left
out.
"""

from __future__ import annotations

from fdstore.model.lifecycle import ENDED
from fdstore.model.people import AskingProcess
from fdstore.model.records import ProcessRecord, Record, TreeCounts, Unreadable
from fdstore.store.content_info import descriptor_of
from fdstore.store.doctor.safety import Finding
from fdstore.store.hashes import pairs
from fdstore.store.keys import ProcessKeys, TreeKeys, content_keys, is_content, is_root, member_of
from fdstore.store.processes.people import asking_processes, listed_questions
from fdstore.store.processes.process_records import decode_reply
from fdstore.store.record_format import decoding, replies_or_damage, required, skipping
from fdstore.store.tree_facts import read_counts
from fdstore.store.views.worker_registry import WorkerLoad, Workers, decode_workers, worker_reads
from fdstore.wire.operation import Batch, Operation
from fdstore.wire.scripts import text

MAX_NAMES = 2000
"""Trees that are looked at: those used last."""

MAX_TREES = 200
MAX_MEMBERS = 1000
"""Processes of one tree: those created last."""

MAX_PROCESSES = 4000
MAX_STREAMS = 200


class LiveStream(Record, frozen=True, kw_only=True):
    """One open content: its id in Redis, the process that writes it and its descriptor there, its length so
    far, its source, and when it was created."""

    content: str
    process: str
    fd: str
    chars: int
    bytes: int
    source: str
    created_at: float


class LiveWorker(Record, frozen=True, kw_only=True):
    """One registered worker: until when its heartbeat counts, its sandbox for commands, why it accepts no
    agents ("" if it does), the processes that it runs now, and its load (None if that is not known).
    `vanished_at` is when a worker was last seen that did not shut down and whose heartbeat counts no more,
    else None."""

    name: str
    until: float
    commands: str
    no_agents: str
    runs: tuple[str, ...]
    load: WorkerLoad | None = None
    vanished_at: float | None = None


class LiveSnapshot(Record, frozen=True, kw_only=True):
    """A store at the Redis time `now`. `total_trees` counts all trees, `trees` and `processes` are those that
    were read; `left_out` says in words what was not. `asking` are processes that wait for people. `health`
    are findings about the workers and the store (`eligibility.live_explained` adds them). `unreadable` are
    damaged records."""

    now: float
    total_trees: int
    trees: tuple[TreeCounts, ...]
    processes: tuple[ProcessRecord, ...]
    streams: tuple[LiveStream, ...]
    workers: tuple[LiveWorker, ...]
    left_out: tuple[str, ...] = ()
    asking: tuple[AskingProcess, ...] = ()
    health: tuple[Finding, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


def live(prefix: str, *, ended: bool = False) -> Operation[LiveSnapshot]:
    """Return the live trees, processes, streams and workers; with `ended`, also the trees and processes that
    have ended. Four round trips, whatever the size of the store.

    >>> from fdstore.store.views.live import live
    >>> [process.id for process in store.run(live(store.prefix)).processes]
    ['triage']
    """
    index = TreeKeys(prefix, "").trees
    entries, total, *replies = yield [
        ("ZRANGE", index, -MAX_NAMES, -1),
        ("ZCARD", index),
        *worker_reads(prefix),
    ]
    workers = decode_workers(replies)
    damaged: list[Unreadable] = []
    left_out = [f"{total - len(entries)} trees used longer ago"] if total > len(entries) else []
    names = [text(entry) for entry in reversed(entries) if is_root(entry)]
    counted = yield from read_counts([TreeKeys(prefix, name) for name in names], damaged)
    trees = [tree for tree in counted if ended or tree.live]
    if len(trees) > MAX_TREES:
        left_out.append(f"{len(trees) - MAX_TREES} trees used longer ago")
        del trees[MAX_TREES:]
    processes, streams, asking = yield from _members(prefix, trees, damaged, left_out, ended=ended)
    return LiveSnapshot(
        now=workers.now_s,
        total_trees=total,
        trees=tuple(trees),
        processes=tuple(processes),
        streams=tuple(streams),
        workers=tuple(_workers(workers, processes)),
        left_out=tuple(left_out),
        asking=tuple(asking),
        unreadable=tuple(damaged),
    )


def _members(
    prefix: str, trees: list[TreeCounts], damaged: list[Unreadable], left_out: list[str], *, ended: bool
) -> Operation[tuple[list[ProcessRecord], list[LiveStream], list[AskingProcess]]]:
    """Return the processes and the open streams of these trees, and who asks people. Two round trips."""
    keys = [TreeKeys(prefix, tree.id) for tree in trees]
    requests: Batch = []
    for each in keys:
        requests.append(("ZRANGE", each.processes, -MAX_MEMBERS, -1))
        requests.append(("ZRANGE", each.writers, 0, MAX_STREAMS - 1))
        requests.append(listed_questions(each))
    replies = yield from replies_or_damage(requests)
    members: list[ProcessKeys] = []
    contents: list[tuple[TreeKeys, str]] = []
    asking: list[AskingProcess] = []
    for each, ids, writers, asked in zip(keys, replies[::3], replies[1::3], replies[2::3], strict=True):
        asking += asking_processes(each, asked)
        with skipping(damaged):
            members += [member for name in required(ids) if (member := member_of(each, name))]
        with skipping(damaged):
            contents += [(each, text(content)) for content in required(writers) if is_content(each, content)]
    if len(members) > MAX_PROCESSES:
        left_out.append(f"{len(members) - MAX_PROCESSES} processes of trees used longer ago")
    if len(contents) > MAX_STREAMS:
        left_out.append(f"{len(contents) - MAX_STREAMS} streams")
    del members[MAX_PROCESSES:], contents[MAX_STREAMS:]
    records = yield from replies_or_damage(
        [
            *(("HGETALL", member.record) for member in members),
            *(("HGETALL", content_keys(tree, content).record) for tree, content in contents),
        ]
    )
    processes = []
    for member, reply in zip(members, records, strict=False):
        with skipping(damaged):
            if required(reply):
                process = decode_reply(member.process, reply)[0]
                if ended or process.state not in ENDED:
                    processes.append(process)
    streams = []
    for (_, content), reply in zip(contents, records[len(members) :], strict=True):
        with skipping(damaged):
            if required(reply) and (stream := _stream(content, reply)):
                streams.append(stream)
    return processes, streams, asking


def _stream(content: str, flat: list[bytes]) -> LiveStream | None:
    with decoding(f"the content {content}"):
        fields = pairs(flat)
        found = descriptor_of(fields["fd"], fields)
        if found.state != "open":
            return None
        shared = {name: getattr(found, name) for name in ("fd", "chars", "bytes", "source", "created_at")}
        return LiveStream(content=content, process=found.producer, **shared)


def _workers(registered: Workers, processes: list[ProcessRecord]) -> list[LiveWorker]:
    runs: dict[str, list[str]] = {}
    for process in processes:
        if process.worker and process.state == "running":
            runs.setdefault(process.worker, []).append(process.id)
    found = [
        LiveWorker(
            name=each.name,
            until=each.alive_until,
            commands=each.commands,
            no_agents=each.no_agents,
            runs=tuple(runs.pop(each.name, ())),
            load=each.load,
            vanished_at=None if each.alive_until >= registered.now_s else each.seen_at,
        )
        for each in (*registered.alive, *registered.vanished)
    ]
    # a program that runs its root itself, such as `fdstore run`, is not registered
    found += [
        LiveWorker(
            name=name,
            until=registered.now_s,
            commands="",
            no_agents="it runs its own agent",
            runs=tuple(of),
        )
        for name, of in sorted(runs.items())
    ]
    return found
