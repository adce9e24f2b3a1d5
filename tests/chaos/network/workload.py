"""The clients of a test: threads that call the store over a failing network, and record what they see.

`python -m tests.chaos.network.workload URL FOLDER SEED` runs until its standard input ends, prints `ready`
when all clients are connected, and ends when no call is under way. FOLDER has `agent.toml`, and receives the
histories and exports.

    6 writers of names     put a value in place of the one that they found, on few names, so that they collide
    1 writer of streams    one stream after the other; text that is not stored is kept by the library
    2 readers              follow each stream to its end, and go on where an error stopped them
    1 exporter             saves a long text to one new file after the other
    1 launcher             launches one agent after the other
"""

from __future__ import annotations

import queue
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import fdstore
from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import load
from fdstore.agents.runtime.waker import waker
from fdstore.client import Process
from fdstore.errors import StreamBroken
from tests.chaos.network.network_times import STREAM_LEASE_S
from tests.chaos.network.operations import History, Operation

ROOT = "clients"
KEYS = ("notes/plan.md", "notes/log.md", "notes/cost.md")
NAME_WRITERS, READERS = 6, 2
PIECES_OF_A_STREAM = 60
LONG_CHARS = 600_000
"""More than one request carries."""
EXPORTED = "".join(f"line {number} of the export\n" for number in range(60_000))
PAUSE_S = 0.01
LAUNCHED_AT_ONCE = 6
LAUNCH_EVERY_S = 2.0

Client = Callable[["Clients", Process, History, random.Random], None]


class Clients:
    """The state that the threads share."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.stopping = threading.Event()
        self.streams: list[queue.SimpleQueue[str | None]] = [queue.SimpleQueue() for _ in range(READERS)]
        """For each reader the streams to follow, and None after the last."""

    def go_on(self, pause_s: float = PAUSE_S) -> bool:
        """Pause, and return whether another call may begin."""
        return not self.stopping.wait(pause_s)


def write_names(clients: Clients, process: Process, history: History, rng: random.Random) -> None:
    name = threading.current_thread().name
    number = 0
    while clients.go_on():
        key = rng.choice(KEYS)
        with history.record(Operation(kind="read", subject=key)) as read:
            found = process.find(key)
            read.value = found.source if found else ""
        if read.outcome != "acknowledged":
            continue
        number += 1
        put = Operation(kind="put", subject=key, value=f"{name}.{number}", expected=read.value)
        text = "x" * rng.choice((20, 5000, LONG_CHARS) if number % 20 == 0 else (20, 5000))
        with history.record(put):
            process.put(key, text, source=put.value, expect=found or fdstore.ABSENT)


def write_streams(clients: Clients, process: Process, history: History, rng: random.Random) -> None:
    while clients.go_on():
        with history.record(Operation(kind="open", subject="a stream")) as opened:
            out = process.open_stream(lease_s=STREAM_LEASE_S)
            opened.value = out.fd
        if opened.outcome != "acknowledged":
            continue
        for streams in clients.streams:
            streams.put(out.fd)
        for number in range(PIECES_OF_A_STREAM):
            late = out.is_over
            label = f"{out.fd} piece {number} {'x' * rng.choice((10, 200, 9000))}"
            with history.record(Operation(kind="late" if late else "append", subject=out.fd, value=label)):
                out.write(f"{label}\n")
                out.flush()
            if late or not clients.go_on():
                break
        while not out.is_over:
            with history.record(Operation(kind="end", subject=out.fd)):
                out.end()
            clients.go_on()
    for streams in clients.streams:
        streams.put(None)


def follow_streams(clients: Clients, process: Process, history: History, rng: random.Random) -> None:
    reader = threading.current_thread().name
    streams = clients.streams[int(reader.rpartition("-")[2])]
    while fd := streams.get():
        text = ""
        reached_end = False
        while not reached_end:
            with history.record(Operation(kind="follow", subject=fd)):
                try:
                    for piece in process.follow(fd, start=len(text) + 1):
                        text += piece
                except StreamBroken:
                    pass
                reached_end = True
            clients.go_on()
        history.write(Operation(kind="seen", subject=fd, value=text, expected=reader))


def export(clients: Clients, process: Process, history: History, rng: random.Random) -> None:
    number = 0
    while clients.go_on():
        number += 1
        path = clients.folder / "exports" / f"{number}.txt"
        with history.record(Operation(kind="export", subject=path.name, value="whole")) as done:
            try:
                process.export("fd:1", path)
            finally:
                done.expected = found_in(path)


def found_in(path: Path) -> str:
    if not path.exists():
        return ""
    return "whole" if path.read_text() == EXPORTED else "a part"


def launch_agents(clients: Clients, process: Process, history: History, rng: random.Random) -> None:
    bundle = load(clients.folder / "agent.toml")
    wake = waker(clients.url, process.store.prefix)
    number = 0
    while clients.go_on(LAUNCH_EVERY_S if number >= LAUNCHED_AT_ONCE else 0):
        number += 1
        name = f"agent-{number}"
        with history.record(Operation(kind="launch", subject=name)):
            launch_root(process.store, bundle, name, name=name)
            wake(name)


CLIENTS: dict[str, Client] = {
    **{f"names-{number}": write_names for number in range(NAME_WRITERS)},
    **{f"reader-{number}": follow_streams for number in range(READERS)},
    "streams": write_streams,
    "exports": export,
    "agents": launch_agents,
}


def main(url: str, folder: str, seed: str) -> None:
    clients = Clients(url, Path(folder))
    (clients.folder / "exports").mkdir()
    stores = {name: fdstore.connect(url) for name in CLIENTS}
    threads: list[threading.Thread] = []
    for name, client in CLIENTS.items():
        process = stores[name].process(ROOT)
        if not threads:
            process.create(EXPORTED)
        arguments = (
            clients,
            process,
            History(clients.folder / f"{name}.history"),
            random.Random(f"{seed} {name}"),
        )
        threads.append(threading.Thread(target=client, args=arguments, name=name))
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.read()
    clients.stopping.set()
    for thread in threads:
        thread.join()
    for store in stores.values():
        store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
