"""A store with three trees, and every kind of damage to the records of one of them.

`DamagedStore` creates the trees `alpha`, `hurt` and `omega`, each with agents that are ready, running and
waiting, a pipeline, streams, texts, an extraction and a named passage, and can restore them. `cases` yields
every key and field of `hurt` with every value that replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import redis

from fdstore.agents.loop.program_loader import Bundle, Program
from fdstore.client import Process, Store
from fdstore.model.records import TokenUsage
from fdstore.store.contents import contents
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import journal, leases, pipelines, processes, tool_calls, waiting
from fdstore.store.streams import streams
from fdstore.tools.process_task import ForkTask, SpawnTask, encode_task

TREES = ("alpha", "hurt", "omega")
WORDS = "".join(f"line {number} of the text\n" for number in range(900))
PAGES = "".join(f"{number}\n" for number in range(600))
BUNDLE = Bundle(
    root="solo",
    programs={"solo": Program(name="solo", model="any", system="SOLO", tools=("read_fd", "spawn"))},
)
HELD = processes.StoredProgram("solo", BUNDLE.digest, BUNDLE.json)

VALUES: dict[str, bytes | None] = {
    "bytes-that-are-not-utf-8": b"\xff\xfe{",
    "nothing": b"",
    "nan": b"nan",
    "inf": b"inf",
    "negative": b"-1",
    "a-million-millions": b"1000000000000",
    "past-64-bits": b"9223372036854775808",
    "json": b'{"a":[{"b":["c"]}],"limits":-1}',
    "deep-json": b"[" * 5000,
    "another-tree": b"omega/1",
    "missing": None,
}
MEMBERS = (b"\xff\xfe", b"", b"omega", b"hurt:fds", b"hurt.99", b"omega/1", b"hurt/99", b"-1", b"a/b/c")
SCORES = ("+inf", "-inf", "-1", "1000000000000")


class Case(NamedTuple):
    """One kind of damage: its name and the commands that cause it."""

    name: str
    commands: list[tuple[Any, ...]]


class DamagedStore:
    """Three trees in the Redis of this test process, to be damaged and restored."""

    def __init__(self, store: Store, client: redis.Redis) -> None:
        self.store = store
        self.client = client
        client.flushall()
        for tree in TREES:
            self._make(tree)
        self.keep()

    def keep(self) -> None:
        """Keep the keys as they are now, for `restore`."""
        client = self.client
        self._kept = {key: client.dump(key) for key in client.keys("*") if client.pttl(key) == -1}

    def restore(self) -> None:
        """Restore all keys."""
        with self.client.pipeline(transaction=True) as batch:
            batch.flushall()
            for key, value in self._kept.items():
                batch.restore(key, 0, value)
            batch.execute()

    def damage(self, case: Case) -> None:
        for command in case.commands:
            self.client.execute_command(*command)

    def _make(self, tree: str) -> None:
        run = self.store.run
        root = run(processes.open_root("fdstore", tree, BUNDLE.programs["solo"].tree_limits, program=HELD))
        proc = Process(self.store, root)
        proc.create(WORDS, page_size=200)
        proc.create(PAGES, page_size=4)
        proc.extract("fd:1#L3-40")
        run(contents.create(root, "a named passage", "reference", name="ref:plan"))
        run(streams.open_stream(root, "a stream", lease_s=86_400)).put("hello\n")
        run(streams.open_stream(root, "a draft", lease_s=None))
        run(
            pipelines.start(
                root, '{"kind":"pipe","commands":[["sort"]],"page_size":9}', title="sort", in_fd="fd:1"
            )
        )
        output = processes.ChildStream("its text", 100)
        ready = self._child(root, "ready")
        self._child(root, "running", output=output)
        self._running(f"{tree}.3")
        waits = self._child(root, "waiting")
        parent = self._running(waits.id)
        below = self._child(parent, "child")
        run(waiting.park(parent, [below.id]))
        ended = self._child(root, "ended")
        run(processes.end(ended, "cancelled", exit_code=None, reason="killed"))
        fork = ForkTask(of=waits.id, records=1, call="toolu", prompt="Look.", copy=1, copies=1)
        self._child(root, "fork", brief=encode_task(fork))
        run(tool_calls.store_result(self._running(f"{tree}.3", again=True), "toolu_1", '{"kind":"result"}'))
        run(processes.launch(root, encode_task(SpawnTask(query="Go."))))
        assert ready.id == f"{tree}.2"

    def _child(self, parent: ProcessHandle, what: str, **more: Any) -> ProcessHandle:
        brief = more.pop("brief", encode_task(SpawnTask(query=what)))
        return self.store.run(
            processes.create_child(parent, None, state="ready", program=HELD, brief=brief, **more)
        )

    def _running(self, process: str, *, again: bool = False) -> ProcessHandle:
        keys = process_keys("fdstore", process)
        if not again:
            claim = self.store.run(leases.claim(keys, "here:1"))
            assert isinstance(claim, leases.Claim)
            handle = ProcessHandle(keys, claim.limits, claim.attempt)
            start = '{"kind":"start","system":"S","content":"C"}'
            # counted as an answer, so that the tree has the fields that count them
            self.store.run(journal.append(handle, 1, [start], usage=TokenUsage(input_tokens=7)))
        return ProcessHandle(keys, self.store.tree(process.partition(".")[0]).limits, 1)


def cases(client: redis.Redis) -> Iterator[Case]:
    """Yield every kind of damage to the tree `hurt`, one at a time."""
    yield from _in_the_list_of_trees()
    for name in sorted(client.keys("fdstore:{hurt}*")):
        if client.pttl(name) == -1:
            yield from _of_key(client, name, name.decode().removeprefix("fdstore:{hurt}"))


def _in_the_list_of_trees() -> Iterator[Case]:
    for member in (b"\xff\xfe", b"", b"hurt.1", b"{x}", b"hurt:fds"):
        yield Case(f"trees/plus-{member!r}", [("ZADD", "fdstore:trees", 0, member)])
    for score in SCORES:
        yield Case(f"trees/score-{score}", [("ZADD", "fdstore:trees", score, "hurt")])


def _of_key(client: redis.Redis, key: bytes, shown: str) -> Iterator[Case]:
    kind = client.type(key).decode()
    making: dict[str, tuple[Any, ...]] = {
        "string": ("SET", key, "x"),
        "list": ("RPUSH", key, "x"),
        "hash": ("HSET", key, "x", "y"),
        "zset": ("ZADD", key, 1, "x"),
        "set": ("SADD", key, "x"),
    }
    yield Case(f"{shown}/missing", [("DEL", key)])
    for other, command in making.items():
        yield Case(f"{shown}/is-a-{other}", [("DEL", key), command])
    if kind == "hash":
        fields = sorted(client.hkeys(key))
        if len(fields) > 20:  # the pages of a text
            fields = [fields[0], fields[len(fields) // 2], fields[-1]]
        for field in fields:
            for what, value in VALUES.items():
                command = ("HDEL", key, field) if value is None else ("HSET", key, field, value)
                yield Case(f"{shown}/{field.decode()}/{what}", [command])
        yield Case(f"{shown}/a-field-of-a-newer-version", [("HSET", key, "newer", "17")])
        yield Case(f"{shown}/a-field-that-is-not-utf-8", [("HSET", key, b"\xff\xfe", b"\xff")])
    elif kind == "list":
        for what, value in VALUES.items():
            if value is not None:
                yield Case(f"{shown}/0/{what}", [("LSET", key, 0, value)])
    elif kind == "zset":
        for member in MEMBERS:
            yield Case(f"{shown}/plus-{member!r}", [("ZADD", key, 0, member)])
        for member, _ in client.zrange(key, 0, 2, withscores=True):
            for score in SCORES:
                yield Case(f"{shown}/{member.decode()}/score-{score}", [("ZADD", key, score, member)])
    elif kind == "set":
        for member in MEMBERS:
            yield Case(f"{shown}/plus-{member!r}", [("SADD", key, member)])
    elif kind == "string":
        for what, value in VALUES.items():
            if value is not None:
                yield Case(f"{shown}/{what}", [("SET", key, value)])
