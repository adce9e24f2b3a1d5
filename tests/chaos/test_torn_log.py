"""A log truncated inside a script, on a Redis with default settings: partial state never reads as complete.

A run truncates some scripts at a point chosen by the seed; `make chaos` truncates each script in the middle
of every command that it wrote, and at every byte of short ones. Then the server is started, other clients
write more, and it is started again: `torn_log` explains why.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.local.redis_server import PrivateServer
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import asks, leases, pipelines, processes, python_state
from fdstore.store.processes.asks import Answered, Ask, AskAnswer, AskPart, AskSettings
from fdstore.store.streams import streams
from fdstore.store.streams.streams import StreamAppender
from tests.chaos import torn_log
from tests.chaos.conftest import Faults
from tests.chaos.torn_log import STOCK, TYPED, Log, Texts, TornLogServer

LONG = "".join(f"line {n} of a text that has several pages\n" for n in range(400))
SHORT = "a little more, and no end of line"
ODD = "漢字 and\nno end of the last line"
STREAMS = STREAM, DRAFT, TINY, EMPTY, RAW = "fd:3", "fd:4", "fd:5", "fd:6", "fd:7"
"""Three of text, one that has no piece yet, one of bytes."""

Write = Callable[[Store], object]
Snapshot = tuple[Texts, dict[str, Any]]
"""The texts, and what is said of the processes."""


def append(store: Store, fd: str, text: str | bytes) -> None:
    appender: StreamAppender = store.run(streams.resume(store.process("t").handle, fd))
    appender.put(text)
    store.run(appender.store())


def agent(store: Store) -> object:
    program = processes.StoredProgram("writer", "digest", '{"programs": {}}')
    output = processes.ChildStream("agent writer", 100)
    made = processes.create_child(
        store.process("t").handle,
        ["fd:1"],
        state="ready",
        program=program,
        brief='{"query": "brief 1"}',
        output=output,
    )
    return store.run(made)


def other_agent(store: Store) -> object:
    made = processes.create_child(
        store.process("t").handle, ["fd:2"], state="ready", brief='{"query": "brief 2"}'
    )
    return store.run(made)


def pipeline(store: Store) -> object:
    handle = store.process("t").handle
    return store.run(pipelines.start(handle, '{"pipe": 1}', title="sort", in_fd="new", tees=(1,)))


def open_stream(store: Store) -> object:
    return store.run(streams.open_stream(store.process("t").handle, "new", 20, lease_s=None))


def claim(store: Store) -> object:
    return store.run(leases.claim(store.process("ready").handle.keys, "a worker"))


def seal(store: Store) -> None:
    store.run(store.run(streams.resume(store.process("t").handle, STREAM)).seal(0))


def run_call(store: Store, call: str, session: bytes) -> None:
    """Run a call of a program that leaves this session."""
    handle = store.process("t").handle
    store.run(python_state.begin(handle, call, 1))
    store.run(python_state.record(handle, call, {0: b"zero"}))
    store.run(python_state.suspend(handle, call, session * 2))
    store.run(python_state.end(handle, call, session, result="{}"))


def start_asks(store: Store, call: str, count: int) -> tuple[str, ...]:
    asked = [Ask(number, "Which dates?", [AskPart("fd:1")]) for number in range(count)]
    return store.run(asks.start(store.process("t").handle, call, asked, AskSettings(model="any")))


def answer_asks(store: Store) -> None:
    """Take asks in the first lane, and answer some."""
    keys = process_keys(store.prefix, start_asks(store, "call", 60)[0])
    claimed = store.run(leases.claim(keys, "a worker"))
    handle = ProcessHandle(keys, claimed.limits, claimed.attempt)
    parent = store.process("t").handle
    found = store.run(asks.take_next(handle, parent, "call", width=9, running=[], answered=[]))
    answered = [Answered(number=number, answer=AskAnswer(text="None.")) for number in found.asks]
    store.run(asks.take_next(handle, parent, "call", width=9, running=[], answered=answered))


WRITES: dict[str, Write] = {
    "run a call": lambda store: run_call(store, "call", b"variables" * 100),
    "run a call with a large session": lambda store: run_call(store, "call", b"variables" * 70_000),
    "start asks": lambda store: start_asks(store, "call", 60),
    "answer asks": answer_asks,
    "append a little": lambda store: append(store, STREAM, SHORT),
    "append a long text": lambda store: append(store, STREAM, LONG),
    "append a long text to little": lambda store: append(store, DRAFT, LONG),
    "append what ends the page": lambda store: append(store, DRAFT, "+\n" + "x" * 90),
    "append thousands of pages": lambda store: append(store, TINY, "a\nb" * 900),
    "append bytes": lambda store: append(store, RAW, b"\xff" * 50),
    "append the first bytes": lambda store: append(store, EMPTY, b"\x89PNG\r\n\x1a\n" + b"\xff" * 9000),
    "append the first text": lambda store: append(store, EMPTY, ODD * 30),
    "create": lambda store: store.process("t").create(ODD),
    "create a long one": lambda store: store.process("t").create(LONG * 3, page_size=20),
    "extract": lambda store: store.process("t").extract("fd:1#L3-9"),
    "child": lambda store: store.process("t").child(["fd:1", "fd:2"]),
    "fork": lambda store: store.process("t").fork(),
    "agent": agent,
    "pipeline": pipeline,
    "open": open_stream,
    "seal": seal,
    "close": lambda store: store.process("t").close("fd:1"),
    "close the last": lambda store: store.process("t").close("fd:2"),
    "end": lambda store: store.process("t.1").end(),
    "end the root": lambda store: store.process("t").end(),
    "cancel": lambda store: store.run(processes.cancel(store.prefix, "t")),
    "new tree": lambda store: store.process("n").create("in a new tree"),
    "launch": lambda store: store.run(processes.launch(store.process("u").handle, '{"query": "brief 3"}')),
    "claim": lambda store: claim(store),
    "put": lambda store: store.process("t").put("kept", ODD * 2),
    "rename": lambda store: store.process("t").rename("kept", "moved"),
    "create bytes": lambda store: store.process("t").create(b"\x89PNG" * 30, page_size=20),
}
"""The writes that are done last, and torn."""

AFTER: dict[str, Write] = {
    "run a call": lambda store: run_call(store, "other", b"other"),
    "start asks": lambda store: start_asks(store, "call", 30),
    "elsewhere": lambda store: store.process("u").create("in another tree"),
    "a little": lambda store: append(store, STREAM, "other"),
    "little to the draft": lambda store: append(store, DRAFT, "other"),
    "long": lambda store: append(store, STREAM, "other\n" * 1000),
    "create": lambda store: store.process("t").create("other\n" * 30),
    "child": lambda store: store.process("t").child(["fd:2"]),
    "agent": other_agent,
    "open": lambda store: open_stream(store),
    "pages": lambda store: append(store, TINY, "other"),
    "launch": lambda store: store.run(processes.launch(store.process("u").handle, '{"query": "brief 4"}')),
    "claim": lambda store: claim(store),
    "put": lambda store: store.process("t").put("kept", "other\n"),
    "bytes": lambda store: append(store, RAW, b"\xfe" * 9000),
    "first bytes": lambda store: append(store, EMPTY, b"\x89PNG"),
    "first text": lambda store: append(store, EMPTY, "other"),
}
"""The writes that are done with the half in the log."""

SAME = ["a little", "little to the draft", "create", "child", "pages", "launch"]
AFTERWARDS = [
    ["elsewhere"],
    [*SAME, "put", "first text", "run a call"],
    ["agent", "long", "open", "claim", "first bytes", "bytes", "start asks"],
]


def history(store: Store) -> None:
    root = store.process("t")
    root.create(LONG, page_size=100)
    root.create(ODD)
    for size in (100, 100, 3, 20, 40):
        store.run(streams.open_stream(root.handle, "stream", size, lease_s=None))
    append(store, STREAM, "first\n")
    append(store, STREAM, LONG)
    append(store, STREAM, "so far")
    append(store, DRAFT, "a draft\nof two lines")
    append(store, TINY, "xy")
    append(store, RAW, b"\xff" * 70)
    root.put("kept", "under a name\n")
    run_call(store, "first", b"of the first call")
    root.child(["fd:1"])
    root.fork()
    store.process("u").create("stands by itself")
    store.run(processes.launch(store.process("ready").handle, '{"query": "brief 0"}'))


@pytest.fixture
def torn_server(tmp_path: Path) -> Iterator[TornLogServer]:
    with PrivateServer(STOCK) as server:
        yield TornLogServer(server, tmp_path / "saved")


CUTS_A_SEED = 6


@pytest.mark.thorough("half-stored scripts are tested without a restart")
def test_a_partly_logged_script_never_reads_as_complete(
    seed: int, torn_server: TornLogServer, faults: Faults
) -> None:
    rng = random.Random(seed)
    appends = [name for name in WRITES if name.startswith("append")]
    for last in (*rng.sample(appends, 2), *rng.sample(sorted(WRITES), CUTS_A_SEED - 2)):
        start, whole = write(last, torn_server)
        cut = rng.choice(torn_log.command_midpoints(torn_server.saved, start)[1:])
        tear(last, [(cut, rng.choice(AFTERWARDS))], start, whole, torn_server, faults)


@pytest.mark.long
@pytest.mark.parametrize("last", WRITES)
@pytest.mark.parametrize("where", [torn_log.command_midpoints, torn_log.bytes_of])
@pytest.mark.timeout(7200)
def test_a_script_torn_at_any_point_of_the_log_never_reads_as_complete(
    last: str, where: Callable[[Log, int], list[int]], torn_server: TornLogServer, faults: Faults
) -> None:
    start, whole = write(last, torn_server)
    cuts = where(torn_server.saved, start)
    if where is torn_log.command_midpoints:
        tears = [(cut, names) for cut in cuts for names in AFTERWARDS]
    else:
        tears = [(cut, AFTERWARDS[number % 3]) for number, cut in enumerate(cuts)]
    tear(last, tears, start, whole, torn_server, faults)


def write(last: str, torn_server: TornLogServer) -> tuple[int, Snapshot]:
    """Write a history that ends with this script; return its offset in the log and a snapshot after it."""
    torn_server.begin()
    with fdstore.connect(torn_server.server.url) as store:
        history(store)
        start = torn_server.log.size
        WRITES[last](store)
        whole = snapshot(store)
        torn_server.save()
    return start, whole


def tear(
    last: str,
    tears: list[tuple[int, list[str]]],
    start: int,
    whole: Snapshot,
    torn_server: TornLogServer,
    faults: Faults,
) -> None:
    wrong = []
    told = 0
    for size, names in tears:
        problems, errors = find_problems(torn_server, size, names, whole)
        told += errors
        wrong += [f"{last}, cut at {size - start}, then {names[0]}: {each}" for each in problems]
    faults.note("log torn", len(tears))
    print(f"{last}: {len(tears)} cuts, {told} typed errors, {len(wrong)} wrong")
    assert not wrong, "\n".join(wrong[:20])


def snapshot(store: Store) -> Snapshot:
    texts: Texts = {}
    facts: dict[str, Any] = {}
    for tree in store.trees():
        texts |= torn_log.texts_of(store, tree.id)
        facts |= torn_log.facts_of(store, tree.id)
    return texts, facts


def find_problems(
    torn_server: TornLogServer, size: int, names: list[str], whole: Snapshot
) -> tuple[list[str], int]:
    """Return the problems after the cut, and the number of typed errors that a reader got."""
    torn_server.put_back(size)
    with fdstore.connect(torn_server.server.url) as store:
        half = snapshot(store)
        for name in names:
            with contextlib.suppress(FDStoreError):  # its process was ended before the cut
                AFTER[name](store)
        known = snapshot(store)
    torn_server.restart()
    with fdstore.connect(torn_server.server.url) as store:
        problems, errors, found = compare(store, known, half, whole)
        more = write_more(store, found)
    return problems + more, errors


def compare(store: Store, known: Snapshot, half: Snapshot, whole: Snapshot) -> tuple[list[str], int, Texts]:
    """Compare the store with the state `known` in the second life. Whatever was not changed since the cut may
    also be as the `whole` script left it."""
    problems: list[str] = []
    errors = 0
    found: Texts = {}
    for tree in store.trees():
        for member in tree.members:
            process = member.id
            facts = allowed_values(process, known[1], half[1], whole[1])
            fact = torn_log.fact_of(store, process)
            if fact not in facts:
                problems.append(f"{process} is {fact}, not {facts}")
            texts = [tables.get(process, {}) for tables in (known[0], half[0], whole[0])]
            listed = [d.fd for d in store.process(process).list()]
            for fd in sorted({*listed, *texts[0]}):
                wanted = allowed_values(fd, *texts)
                if not wanted:
                    problems.append(f"{process} has {fd}, which it never had")
                    continue
                try:
                    text = torn_log.read(store, process, fd)
                except TYPED:
                    errors += 1
                except torn_log.WRONG as error:
                    problems.append(f"{process} {fd}: {type(error).__name__} {str(error)[:300]}")
                else:
                    found.setdefault(process, {})[fd] = text
                    if text not in wanted:
                        problems.append(f"{process} {fd}: {len(text)} characters, not {[*map(len, wanted)]}")
    lost = set(known[1]) - {member.id for tree in store.trees() for member in tree.members}
    return [*problems, *(f"{process} is gone" for process in lost)], errors, found


def allowed_values(key: str, known: dict[str, Any], half: dict[str, Any], whole: dict[str, Any]) -> list[Any]:
    """Return the allowed values: the last known one, or that of the script if unchanged since."""
    if known.get(key) == half.get(key):
        return [each[key] for each in (known, whole) if key in each]
    return [known[key]] if key in known else []


def write_more(store: Store, found: Texts) -> list[str]:
    """Write more in the third life: readable texts can be extended, and new ones are correct."""
    problems = []

    def check(what: str, wanted: str, process: str, fd: str) -> None:
        try:
            text = torn_log.read(store, process, fd)
        except TYPED:
            return
        except torn_log.WRONG as error:
            problems.append(f"{what}: {type(error).__name__} {str(error)[:300]}")
        else:
            if text != wanted:
                problems.append(f"{what}: another text")

    for fd in STREAMS:
        before = found.get("t", {}).get(fd)
        for text in ("more\nof it", LONG):
            try:
                is_bytes = store.process("t").stat(fd).kind == "bytes"
                append(store, fd, text.encode() if is_bytes else text)
            except FDStoreError:
                before = None
                continue
            except torn_log.WRONG as error:
                problems.append(f"append to {fd}: {type(error).__name__} {str(error)[:300]}")
                break
            if before is not None:
                before += text
                check(f"{fd} after more", before, "t", fd)
    try:
        made = store.process("t").create("the last")
        child = store.process("t").child(["fd:1"])
    except FDStoreError:
        return problems
    check("what was created", "the last", "t", made.fd)
    if [d.fd for d in child.list()] != ["fd:1"]:
        problems.append(f"a new child holds {[d.fd for d in child.list()]}")
    for process, texts in found.items():
        for fd, text in texts.items():
            if fd not in STREAMS:
                check(f"{process} {fd} later", text, process, fd)
    return problems
