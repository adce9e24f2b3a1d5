"""Programs that ask a model about the parts of a text: time, processor, memory, and a killed worker.

An agent on real workers runs a program that splits a text and asks about all parts at once. The ideal time
is that of the model alone: its time for an answer, times the number of asks, by how many run at once. Storing
the text, the agent's own two turns and the suspended program are part of the measured time. A worker has one
slot for each lane and none for the program.

The peer is `rlms`, the reference implementation of recursive language models, with the same text, parts and
questions, on the same model. It is measured where `$FDSTORE_BENCH_RLMS` names a Python that has it. It holds
text and program in one process, and asks at most 16 questions at a time, whatever is asked for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from fdstore.agents.loop.program_loader import Bundle, Program
from fdstore.bench import texts
from fdstore.bench.child import output_of
from fdstore.bench.measuring import BenchRow, at_most, format_duration, row, wait_until
from fdstore.bench.process_tree import children, memory_bytes, peak_memory, processor_s
from fdstore.bench.real_workers import record_of, run_worker, wait_for_end, wake
from fdstore.bench.slow_model import ArrivedQuestion, SlowModel, slow_model
from fdstore.bench.stage import GB, KB, MB, UNBOUNDED, BenchStage, format_size
from fdstore.client import Process
from fdstore.results.python_config import AskSection, PythonSection
from fdstore.store import tree_limits
from fdstore.store.processes import process_records, processes
from fdstore.store.processes.asks import PER_LANE
from fdstore.text.paging import DEFAULT_PAGE_SIZE, pages_of
from fdstore.tools.process_task import SpawnTask, encode_task

PEER = "FDSTORE_BENCH_RLMS"
PEER_MISSING = f"rlms was not measured: ${PEER} names no Python that has it (`pip install rlms` in a venv)"

PATIENCE_S = 180.0
PAGES = 13
"""The size of a part: some 50 KB. Unlike parts by characters, these are known to be so many."""

FEW_PAGES = 1
AT_ONCE = 50
FEW_AT_ONCE = 10
SLOTS = -(-AT_ONCE // PER_LANE)
"""Slots of a worker: one for each lane."""

PARTS_OF_LARGE = 4

ASK_ALL = """
import asyncio
log = fd("fd:1")
parts = log.split(pages={pages})
answers = await asyncio.gather(*[ask(f"Which dates occur? (part {{n}})", p) for n, p in enumerate(parts)])
print(len(answers))
"""

ASK_FEW = """
import asyncio
log = fd("fd:1")
hits = log.search("answer was 503", max_matches=1000)
parts = log.split(chars=200_000)
some = parts[:: len(parts) // {parts}][:{parts}]
answers = await asyncio.gather(*[ask(f"Which dates occur? (part {{n}})", p) for n, p in enumerate(some)])
print(len(answers))
"""

ASK_NOTHING = """
import asyncio
answers = await asyncio.gather(*[ask(f"Which dates occur? (part {{n}})") for n in range({asks})])
print(len(answers))
"""


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    many, answer_s = (40, 0.1) if stage.quick else (400, 0.5)
    pages = FEW_PAGES if stage.quick else PAGES
    shape = f"{many} asks of {answer_s:g} s about {format_size(many * pages * DEFAULT_PAGE_SIZE)}"
    ideal = format_duration(many * answer_s / min(AT_ONCE, many))
    with slow_model(answer_s) as model, ready_worker(stage, model) as pid:
        if not stage.quick:
            yield large_text(stage, model, pid)  # first: its memory is that above a worker that did little
        model.answer_after(answer_s)
        alone = ask_about_parts(stage, [pid], many, pages)
        sdk_ms = processor_of_sdk(model, many, pages)
        theirs = run_peer(model, many, pages) if peer() else None
        with ready_worker(stage, model) as other:
            two = ask_about_parts(stage, [pid, other], many, pages)
            for name, run, limit in (("one worker", alone, 10.0), ("two workers", two, 7.0)):
                yield row(f"{shape}, {name}", at_most(limit, "s"), run.seconds, run.shown, ideal)
                if theirs:
                    value = run.seconds / theirs.seconds
                    case = f"{shape}, {name}, against rlms"
                    yield row(case, at_most(1.0), value, run.shown, format_duration(theirs.seconds))
            yield many_at_once(stage, model, [pid, other])
        ours, bare = (f"{value:.1f} ms" for value in (alone.processor_ms, sdk_ms))
        value = alone.processor_ms - sdk_ms
        yield row("ask: the worker's processor, over the SDK", at_most(12, "ms"), value, ours, bare)
        yield row("program that waits: until it holds no slot", at_most(1000, "ms"), alone.left_ms)
        for asks in (40,) if stage.quick else (400, 1000):
            yield snapshot(stage, model, asks)
        model.answer_after(answer_s)
        yield from killed_worker(stage, model, pid, many, pages)


class Run(msgspec.Struct, frozen=True):
    """A measured run: its time, the workers' processor time for each ask, and how long the program held its
    slot after it was stored."""

    seconds: float
    processor_ms: float
    left_ms: float

    @property
    def shown(self) -> str:
        return format_duration(self.seconds)


def ask_about_parts(
    stage: BenchStage, workers: Sequence[int], parts: int, pages: int, at_once: int = AT_ONCE
) -> Run:
    """Run a program that asks about all parts of a text."""
    text = text_of(parts, pages)
    before_s = sum(map(processor_s, workers))
    start = time.monotonic()
    with running(stage, ASK_ALL.format(pages=pages), parts, at_once=at_once, text=text) as root:
        until(lambda: snapshot_bytes(stage, root) > 0)
        stored_at = time.monotonic()
        until(lambda: record_of(stage, root.id).state != "running")
        left_s = time.monotonic() - stored_at
    seconds = time.monotonic() - start
    spent_s = sum(map(processor_s, workers)) - before_s
    return Run(seconds, 1000 * spent_s / parts, 1000 * left_s)


def many_at_once(stage: BenchStage, model: SlowModel, workers: Sequence[int]) -> BenchRow:
    asks, at_once, answer_s = (80, 100, 0.1) if stage.quick else (1000, 100, 1.0)
    model.answer_after(answer_s)
    run = ask_about_parts(stage, workers, asks, FEW_PAGES, at_once)
    ideal = asks * answer_s / min(asks, at_once)
    case = f"{asks} asks of {answer_s:g} s, {at_once} at a time on two workers: over the ideal"
    # of a short run, most is not the model's time
    bar = at_most(30.0 if stage.quick else 1.6)
    return row(case, bar, run.seconds / ideal, run.shown, format_duration(ideal))


def processor_of_sdk(model: SlowModel, parts: int, pages: int) -> float:
    """Return the processor time of the SDK for each request, in ms, with the same requests."""
    return 1000 * float(output_of("sdk_asks", model.base_url, parts, pages)) / parts


def snapshot(stage: BenchStage, model: SlowModel, asks: int) -> BenchRow:
    """Measure a stored program without variables of its own, while it waits for all of its asks."""
    model.answer_after(0.2)
    with running(stage, ASK_NOTHING.format(asks=asks), asks) as root:
        until(lambda: snapshot_bytes(stage, root) > 0)
        size = snapshot_bytes(stage, root)
    case = f"snapshot of a program that waits for {asks} asks"
    return row(case, at_most(64, "KB"), size / KB)


def large_text(stage: BenchStage, model: SlowModel, worker: int) -> BenchRow:
    """Measure the memory of the worker of a program that searches 1 GB, splits it, and asks of few parts."""
    theirs = ""
    model.answer_after(0.1)
    if peer():
        theirs = f"{run_peer(model, PARTS_OF_LARGE, PAGES, size=GB).memory_bytes / MB:.0f} MB"
    idle = memory_bytes(worker)
    with (
        peak_memory(worker) as peak,
        running(stage, ASK_FEW.format(parts=PARTS_OF_LARGE), PARTS_OF_LARGE, size=GB),
    ):
        pass
    grown = (peak.bytes - idle) / MB
    case = "program over 1 GB: the worker's memory, above idle"
    return row(case, at_most(100, "MB"), grown, f"{grown:.0f} MB", theirs)


def killed_worker(
    stage: BenchStage, model: SlowModel, worker: int, parts: int, pages: int
) -> Iterator[BenchRow]:
    """Kill the only worker when half of the asks are answered, and let another one finish. Count the answered
    asks that are asked again."""
    with ExitStack() as others:
        code, text = ASK_ALL.format(pages=pages), text_of(parts, pages)
        with running(stage, code, parts, at_once=FEW_AT_ONCE, text=text) as root:
            began_at = time.monotonic()
            until(lambda: parts // 2 <= len(answered(stage, root)) < _arrived(model, began_at))
            # in a short run only the process that works, which its supervisor replaces at once
            os.kill(children(worker)[0] if stage.quick else worker, signal.SIGKILL)
            killed_at = time.monotonic()
            done = answered(stage, root)
            if not stage.quick:
                others.enter_context(run_worker(stage, model, SLOTS))
        questions = [each for each in model.questions() if each.at_s >= began_at]
    again, under_way = asked_again(questions, done, killed_at)
    ours, theirs = f"{again} of {len(done)}", kill_peer(model, parts, pages) if peer() else ""
    yield row("kill -9 of the worker: answered, and asked again", at_most(0, "count"), again, ours, theirs)
    case = "kill -9 of the worker: under way, and asked again"
    yield row(case, at_most(FEW_AT_ONCE, "count"), under_way)


def _arrived(model: SlowModel, since_s: float) -> int:
    """Return how many parts the model was asked about, so that some are under way if fewer are answered."""
    return len({each.part for each in model.questions() if each.at_s >= since_s})


def asked_again(questions: Sequence[ArrivedQuestion], done: set[int], killed_at: float) -> tuple[int, int]:
    """Return how many parts that had an answer were asked again, and how many others were asked twice."""
    before = {each.part for each in questions if each.at_s <= killed_at}
    after = {each.part for each in questions if each.at_s > killed_at}
    return len(after & done), len((after & before) - done)


# --- the peer


class PeerRun(msgspec.Struct, frozen=True):
    """A run of rlms: its time, and its memory at most."""

    seconds: float
    memory_bytes: int


def peer() -> str:
    """Return the Python that has rlms, "" for none."""
    return os.environ.get(PEER, "")


@contextmanager
def peer_process(
    model: SlowModel, parts: int, pages: int, size: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the same plan with rlms, over the same parts or, with `size`, over some of a text of this size."""
    script = Path(__file__).with_name("rlms_plan.py")
    environ = {**os.environ, **model.environ}
    command = [peer(), str(script), str(parts), str(pages)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdin is not None
        text = texts.of_kind(texts.LOGS, size) if size else text_of(parts, pages)
        process.stdin.write(text.encode())
        process.stdin.close()
        try:
            yield process
        finally:
            process.kill()


def run_peer(model: SlowModel, parts: int, pages: int, size: int = 0) -> PeerRun:
    with peer_process(model, parts, pages, size) as process:
        assert process.stdout is not None
        return msgspec.json.decode(process.stdout.read(), type=PeerRun)


def kill_peer(model: SlowModel, parts: int, pages: int) -> str:
    """Kill it when half of the questions are answered, run it again, and return how many of those it asks
    again."""
    began_at = time.monotonic()
    with peer_process(model, parts, pages) as process:
        until(lambda: len(answered_by(model, began_at)) >= parts // 2)
        process.kill()
        killed_at = time.monotonic()
        done = answered_by(model, began_at)
    run_peer(model, parts, pages)
    again, _ = asked_again([each for each in model.questions() if each.at_s >= began_at], done, killed_at)
    return f"{again} of {len(done)}"


def answered_by(model: SlowModel, began_at: float) -> set[int]:
    """Return the parts whose answers the model has sent since then."""
    sent_before = time.monotonic() - model.answer_s
    return {each.part for each in model.questions() if began_at <= each.at_s <= sent_before}


# --- agents and workers


def text_of(parts: int, pages: int) -> str:
    """Return logs of exactly so many parts."""
    return "".join(parts_of(texts.of_kind(texts.LOGS, parts * pages * DEFAULT_PAGE_SIZE), pages)[:parts])


def parts_of(text: str, pages: int) -> list[str]:
    """Return the parts that `split` cuts a text into."""
    found = pages_of(text, DEFAULT_PAGE_SIZE)
    return ["".join(found[start : start + pages]) for start in range(0, len(found), pages)]


@contextmanager
def ready_worker(stage: BenchStage, model: SlowModel) -> Iterator[int]:
    """Start a worker, let it import its modules, and yield its pid."""
    with run_worker(stage, model, SLOTS) as pid:
        for _ in range(2):
            with running(stage, ASK_NOTHING.format(asks=4), 4):
                pass
        yield pid


@contextmanager
def running(
    stage: BenchStage, code: str, printed: int, *, at_once: int = AT_ONCE, text: str = "", size: int = 0
) -> Iterator[Process]:
    """Launch an agent that runs the code over a text, or over `size` bytes of logs. Wait after the block
    until it has ended, and check what its program has `printed`: how many asks it made."""
    python = PythonSection(ask=AskSection(model="any", at_once=at_once))
    reader = Program(
        name="reader", model="any", system="You are a reader.", tools=("run_python",), python_limits=python
    )
    bundle = Bundle(root="reader", programs={"reader": reader})
    program = processes.StoredProgram("reader", bundle.digest, bundle.json)
    name = tree_limits.fresh_name("reader")
    root = Process(
        stage.store,
        stage.store.run(
            processes.open_root(stage.store.prefix, name, UNBOUNDED, fresh=True, exact=False, program=program)
        ),
    )
    if size:
        root.ingest(texts.log_file(size))
    elif text:
        root.create(text)
    # after its text is there: a worker may find it before it is woken
    stage.store.run(processes.launch(root.handle, encode_task(SpawnTask(query=f"<code>{code}</code>"))))
    wake(stage, root.id)
    yield root
    record = wait_for_end(stage, root.id, PATIENCE_S)
    assert (record.state, record.exit_code) == ("exited", 0), record
    result = stage.store.run(process_records.answer_of(stage.store.prefix, root.id)).text
    assert f"\n{printed}\n" in result, result


def snapshot_bytes(stage: BenchStage, root: Process) -> int:
    """Return the size of the stored program of a process, 0 for none."""
    fields: Any = stage.plain.hgetall(root.handle.keys.python)
    version = msgspec.json.decode(fields.get(b"head", b"{}")).get("snapshot", "")
    pieces = [name for name in fields if version and name.rpartition(b"/")[0] == version.encode()]
    return sum(len(fields[name]) for name in pieces)


def answered(stage: BenchStage, root: Process) -> set[int]:
    """Return the parts whose answers are stored. The host calls of the program before its first ask are two:
    for the text, and for its parts."""
    names: Any = stage.plain.hkeys(root.handle.keys.asks)
    numbers = [int(name.rpartition(b"/")[2]) for name in names if name.startswith(b"answer/")]
    return {number - 2 for number in numbers}


def until(is_so: Callable[[], bool]) -> None:
    wait_until(is_so, "the expected state of a program", PATIENCE_S)
