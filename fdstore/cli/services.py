"""The verbs for what runs in the background: up, down, status.

Each service has one function that starts it, one that stops it and one that says how it is; the
verbs go through them and print. They act on the embedded server only: a Redis that somebody named
with a URL is theirs to start and stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdstore.cli import output
from fdstore.cli.session import Session, verb
from fdstore.cli.tables import counted, duration, facts, size
from fdstore.records import Record

if TYPE_CHECKING:
    from fdstore.store.server import ServerStatus


class StoreStatus(Record, frozen=True, kw_only=True):
    """A store that answers: what it is, and what it holds. `contents` and `bytes` (of UTF-8) are those
    of all trees."""

    url: str
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


@verb
def up(session: Session) -> None:
    """Start the embedded server, if it is not running."""
    server = start_server(session)
    if session.as_json:
        output.document({"server": server})
    else:
        output.line(facts(server_facts(server)))
    note_other_store(session)


@verb
def down(session: Session) -> None:
    """Stop the embedded server. Its data stays, and the next command starts it again."""
    stopped = stop_server(session)
    if session.as_json:
        output.document({"server": {"stopped": stopped}})
    else:
        output.line("server  stopped" if stopped else "server  was not running")
    note_other_store(session)


@verb
def status(session: Session) -> None:
    """Show what runs and what it holds. Nothing is started."""
    server = session.embedded_server().status()
    url = session.chosen_url
    ready = server.running and server.version is not None
    store = store_status(session, url or server.url) if url or ready else None
    if session.as_json:
        output.document({"store": store, "server": server})
        return
    said = store_facts(store) if url and store else server_facts(server)
    output.line(facts([*said, *(held_facts(store) if store else [])]))


def start_server(session: Session) -> ServerStatus:
    """The embedded server, running."""
    server = session.embedded_server()
    server.ensure()
    return server.status()


def stop_server(session: Session) -> bool:
    """Whether the embedded server ran; now it does not."""
    return session.embedded_server().stop()


def store_status(session: Session, url: str) -> StoreStatus:
    """The store at `url`. Raises `StoreUnavailable`, `UnsafeStore`."""
    from fdstore.store.check import server_info

    with session.store(url) as store:
        info = store.run(server_info("server", "memory", "persistence"))
        trees = store.trees()
        return StoreStatus(
            url=store.where,
            version=info["redis_version"],
            uptime_s=int(info["uptime_in_seconds"]),
            used_memory_bytes=int(info["used_memory"]),
            maxmemory_bytes=int(info.get("maxmemory", 0)),
            aof_enabled=info.get("aof_enabled") == "1",
            trees=len(trees),
            processes=sum(tree.processes for tree in trees),
            live=sum(tree.live for tree in trees),
            contents=sum(tree.fds for tree in trees),
            bytes=sum(tree.bytes for tree in trees),
        )


def server_facts(server: ServerStatus) -> list[tuple[str, str]]:
    """The embedded server, for people."""
    if not server.running:
        return [
            ("server", "not running; `fdstore up` or the first command starts it"),
            ("data", server.data_dir),
        ]
    if server.version is None:
        return [("server", f"starting, pid {server.pid}"), ("url", server.url), ("data", server.data_dir)]
    return [
        ("server", f"running, Redis {server.version}, pid {server.pid}, up {duration(server.uptime_s or 0)}"),
        ("url", server.url),
        ("data", f"{server.data_dir} ({'append-only file on' if server.aof_enabled else 'NOT ON DISK'})"),
        ("memory", size(server.used_memory_bytes or 0)),
    ]


def store_facts(store: StoreStatus) -> list[tuple[str, str]]:
    """A store that somebody named, for people."""
    limit = f" of {size(store.maxmemory_bytes)}" if store.maxmemory_bytes else ""
    return [
        ("store", f"answers, Redis {store.version}, up {duration(store.uptime_s)}"),
        ("url", store.url),
        (
            "disk",
            "append-only file on" if store.aof_enabled else "append-only file OFF; see `fdstore doctor`",
        ),
        ("memory", f"{size(store.used_memory_bytes)}{limit}"),
    ]


def held_facts(store: StoreStatus) -> list[tuple[str, str]]:
    """What a store holds, for people."""
    processes = f"{counted(store.processes, 'process', 'processes')} ({store.live} not ended)"
    contents = f"{counted(store.contents, 'content')} with {size(store.bytes)} of text"
    return [("holds", f"{counted(store.trees, 'tree')}, {processes}, {contents}")]


def note_other_store(session: Session) -> None:
    """Says so when commands do not use the server that was just started or stopped."""
    from fdstore.store.wire import shown_url

    if session.chosen_url:
        output.note(f"note: commands here use {shown_url(session.chosen_url)}, not the embedded server")
