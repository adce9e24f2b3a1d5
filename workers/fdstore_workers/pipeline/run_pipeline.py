"""Run the pipeline of a process: stream one content in, and the outputs into other contents.

    input content --follow--> [stage 1 | stage 2 | ...] --+--> output
    (sealed, or still open)                               +--> stderr, tees

If all stages end by themselves, the outputs are sealed with the exit code, and with the exit codes of the
chain at EOF. Any other end has a reason, and `ends` says in which state the process ends and with what
the outputs break. Once cancelled or lost, the worker writes nothing more: the store has broken the outputs.

An output whose first 64 KB are UTF-8 is text; any other is bytes, stored as they are. stderr is always text.

While the store is unreachable or takes no writes, the programs block: their output stays in the pipes, and
bytes already read stay in memory. The pipeline is not given up, because its programs cannot be run twice.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from fdstore.agents.runtime.claim import STOP_GRACE_S, Flag
from fdstore.agents.runtime.periodic import run_periodically
from fdstore.agents.runtime.store_wait import LONGEST_PAUSE_S, WaitLog, until_taken
from fdstore.client import Store, StreamWriter
from fdstore.client.write_buffer import FINAL
from fdstore.errors import (
    STORE_FAILURES,
    FDStoreError,
    NewerFormat,
    NotAllowed,
    NotFound,
    QuotaExceeded,
    StreamBroken,
)
from fdstore.files.permissions import CommandsOff, Permissions
from fdstore.model import ends
from fdstore.model.ends import Reason
from fdstore.model.lifecycle import ProcessEnd
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import pipelines
from fdstore.store.processes.pipelines import PipeFds
from fdstore.store.streams import streams
from fdstore.store.streams.following import follow_bytes
from fdstore.text.utf8 import TextOrBytes, Utf8Text
from fdstore.tools.process_task import PipeTask
from fdstore_workers.pipeline.choose_sandbox import Sandbox
from fdstore_workers.pipeline.pipes import BranchClosed
from fdstore_workers.pipeline.poll_loop import PipelineResult, PipelineRun

log = logging.getLogger("fdstore.pipelines")

LOOK_UP_EVERY_S = 0.2
PAUSE_S = 0.1
"""An output that is UTF-8 so far is text at the first look after this time: its readers may wait for it."""
FEED_WAIT_S = 0.5
STOP_KILL_S = 5.0
"""The time before the worker's own end at which it kills a running pipeline."""

_output = WaitLog(log, "a pipeline waits for the store")
_input = WaitLog(log, "the input of a pipeline waits for the store")


class Branch:
    """One content that a pipeline writes: appends the bytes of programs, as text if `decoder` says so."""

    def __init__(
        self,
        store: Store,
        handle: ProcessHandle,
        fd: str,
        page_size: int,
        lost: threading.Event,
        decoder: type[Utf8Text | TextOrBytes],
    ) -> None:
        self._lost = lost
        self._new_decoder = decoder
        self._writer = StreamWriter(store.run, streams.appender_for_output(handle, fd, page_size))
        self._decoders: dict[int, Utf8Text | TextOrBytes] = {}
        self._begun_at = math.inf
        self._taking = threading.Lock()  # held while output is passed on
        self._closed = False
        self.over_quota = False

    @property
    def closed(self) -> bool:
        """Return whether the last holder has released it. A writer without output learns that with some
        delay."""
        return self._closed or self._writer.is_over

    @property
    def replaced(self) -> int:
        """The number of bytes so far that were not UTF-8."""
        return sum(decoder.replaced for decoder in self._decoders.values())

    def take(self, data: bytes, stage: int = 0) -> None:
        """Store the output of a stage. Raises `BranchClosed` if the content has no holder."""
        with self._taking:
            if stage not in self._decoders:
                self._decoders[stage] = self._new_decoder()
                self._begun_at = time.monotonic()
            self._write(self._decoders[stage].feed(data))

    def settle(self) -> None:
        """Store what is held back until its kind is decided, if the output pauses. Any thread may call this;
        it does not wait."""
        if time.monotonic() - self._begun_at < PAUSE_S or not self._taking.acquire(blocking=False):
            return
        try:
            for decoder in self._decoders.values():
                if isinstance(decoder, TextOrBytes) and (text := decoder.settle()):
                    with suppress(BranchClosed):  # the next output raises it again
                        self._write(text)
        finally:
            self._taking.release()

    def say(self, text: str) -> None:
        """Append a message of fdstore."""
        if not self.closed:
            self._write(text)

    def finish(self) -> None:
        """Flush the incomplete characters at the end of each stage's output."""
        for decoder in self._decoders.values():
            if (rest := decoder.end()) and not self.closed:
                self._write(rest)

    def end(self, exit_code: int, chain: str) -> None:
        """Seal the content: readers see EOF."""
        self._close(lambda: self._writer.end(exit_code, chain=chain))

    def break_off(self, reason: str) -> None:
        """Mark the content as broken."""
        self._close(lambda: self._writer.fail(reason))

    def _write(self, text: str | bytes) -> None:
        try:
            try:
                self._writer.write(text)
            except STORE_FAILURES:
                until_taken(self._writer.flush, self._lost, _output)  # the writer has buffered the text
        except FINAL as error:
            self._closed = True
            self.over_quota = isinstance(error, QuotaExceeded)
            raise BranchClosed from error

    def _close(self, close: Callable[[], None]) -> None:
        # on these errors nothing is left to do: no holder is left, or the store breaks the content itself
        with suppress(*FINAL, *STORE_FAILURES):
            until_taken(close, self._lost, _output)


class Feed:
    """The input of a pipeline: yields the bytes of a content (of text its UTF-8) up to its EOF, following it
    while it is open.

    `broken` is the reason if the content broke before its EOF.
    """

    def __init__(self, store: Store, handle: ProcessHandle, fd: str | None, lost: threading.Event) -> None:
        self._store, self._handle, self._fd, self._lost = store, handle, fd, lost
        self.broken: str | None = None

    def __iter__(self) -> Iterator[bytes]:
        if self._fd is None:
            return
        follower = follow_bytes(self._handle, self._fd)
        pause_s = FEED_WAIT_S
        while not follower.ended:
            try:
                piece = self._store.run(follower.more(FEED_WAIT_S))
            except StreamBroken as error:
                self.broken = error.reason
                return
            except NotFound:
                # the process was cancelled or given up, and its hold on the input with it
                self.broken = ends.CLOSED.name
                return
            except NewerFormat:
                raise
            except STORE_FAILURES as error:
                _input.waits(error)
                self._lost.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                yield b""
                continue
            _input.goes_on()
            pause_s = FEED_WAIT_S
            yield piece


def run_pipeline(
    sandbox: Callable[[], Sandbox],
    permissions: Permissions,
    store: Store,
    handle: ProcessHandle,
    brief: PipeTask,
    lost: threading.Event,
    stop: Flag,
) -> ProcessEnd:
    """Run a pipeline to its end, seal or break its outputs, and return how it ended."""
    fds = until_taken(lambda: store.run(pipelines.fds_of(store.prefix, handle.id)), lost, _output)
    if fds is None:
        return ProcessEnd("failed", None, "not a pipeline")

    def branch(fd: str, decoder: type[Utf8Text | TextOrBytes]) -> Branch:
        return Branch(store, handle, fd, brief.page_size, lost, decoder)

    output, error = branch(fds.fd, TextOrBytes), branch(fds.stderr_fd, Utf8Text)
    tees = [branch(fd, TextOrBytes) for fd in fds.tee_fds]
    feed = Feed(store, handle, fds.in_fd, lost)
    try:
        permissions.check_commands(argv[0] for argv in brief.commands)
        engine = sandbox()
        pipeline = PipelineRun(
            brief.commands,
            output=output.take,
            error=lambda stage, data: error.take(data, stage),
            tee={stage: each.take for stage, each in zip(brief.tee, tees, strict=True)},
            feed=iter(feed) if fds.in_fd else None,
            command=engine.wrap,
            reports=engine.reports,
            environment=engine.environment,
            limits=brief,
        )
        ended = _run_watched(pipeline, [output, *tees], lost, stop)
    except FDStoreError as problem:
        for each in (output, error, *tees):
            each.break_off(problem.type)
        reason = problem.type
        if isinstance(problem, CommandsOff):
            reason = str(problem)
        elif isinstance(problem, NotAllowed):
            reason = ends.REFUSED.text(problem)
        return ProcessEnd("failed", None, reason)
    return _conclude(store, handle, fds, ended, feed, [output, error, *tees], lost, stopped=stop.is_set())


def _run_watched(
    pipeline: PipelineRun, outputs: list[Branch], lost: threading.Event, stop: Flag
) -> PipelineResult:
    """Run the pipeline. Kill it when its process is lost or cancelled, when no output has a holder (which a
    silent pipeline would not notice), or when the worker shuts down. Let paused outputs be text."""
    deadline = math.inf

    def check() -> bool:
        nonlocal deadline
        if stop.is_set():
            deadline = min(deadline, time.monotonic() + STOP_GRACE_S - 2 * STOP_KILL_S)
        for branch in outputs:
            branch.settle()
        unread = all(branch.closed for branch in outputs)
        if lost.is_set() or unread or time.monotonic() >= deadline:
            pipeline.kill(STOP_KILL_S)
            return False
        return True

    with run_periodically(LOOK_UP_EVERY_S, check, "pipeline watch"):
        return pipeline.run()


def _conclude(
    store: Store,
    handle: ProcessHandle,
    fds: PipeFds,
    ended: PipelineResult,
    feed: Feed,
    branches: list[Branch],
    lost: threading.Event,
    *,
    stopped: bool,
) -> ProcessEnd:
    """Seal or break the outputs as the pipeline's end requires; return how the process ended."""
    output, error, *tees = branches
    try:
        for branch in branches:
            with suppress(BranchClosed):
                branch.finish()
        # output and tees may hold the same bytes: count them once
        replaced = error.replaced + max(branch.replaced for branch in (output, *tees))
        if replaced:
            with suppress(BranchClosed):
                error.say(f"fdstore: {replaced} bytes were not UTF-8 and are shown as \\xNN\n")
        until_taken(lambda: store.run(pipelines.store_exit_codes(handle, ended.codes)), lost, _output)
        before = until_taken(lambda: store.run(pipelines.chain_of(handle, fds.in_fd)), lost, _output)
    except FDStoreError:
        for branch in branches:
            branch.break_off(ends.CANCELLED.name)
        raise
    chain = f"{before} {','.join(map(str, ended.codes))}".strip()
    reason = _why(ended, feed, branches, stopped=stopped)
    if reason is None:
        for branch in branches:
            branch.end(ended.code, chain)
        return ProcessEnd("exited", ended.code, "")
    if reason is ends.SANDBOX:
        log.warning("%s failed: no sandbox for one of its stages (the stderr says why)", handle.id)
    said = reason.text(ended.signal)
    for branch in branches:
        if branch is error and reason is ends.CLOSED:
            branch.end(ended.code, chain)  # it is complete: that no reader is left is not a failure
        else:
            branch.break_off(ends.broken_as(reason.state, said))
    return ProcessEnd(reason.state, ended.code, said)


def _why(ended: PipelineResult, feed: Feed, branches: list[Branch], *, stopped: bool) -> Reason | None:
    """Return the reason for which a pipeline ended, None if its stages ended by themselves."""
    output, _, *tees = branches
    if any(branch.over_quota for branch in branches):
        return ends.QUOTA_EXCEEDED
    if ended.reason is not ends.SANDBOX and all(branch.closed for branch in (output, *tees)):
        return ends.CLOSED
    if ended.reason is ends.CANCELLED and stopped:
        return ends.WORKER_LOST
    if ended.reason is not None:
        return ended.reason
    if feed.broken is not None:
        return ends.UPSTREAM_BROKEN
    return None if ended.signal is None else ends.SIGNAL
