"""Runs the commands of a pipeline process: input from one content, outputs into others, while they grow.

    input content --follow--> [stage 1 | stage 2 | ...] --+--> output
    (sealed, or still open)                               +--> stderr, tees

How it ends decides how its outputs end:

    by itself               sealed with the exit code; the chain's codes at EOF
    a stage by a signal     broken (signal n)
    its input broke         its stored bytes are worked on; then failed and broken (upstream_broken)
    its worker has to go    failed (worker_lost) and broken (writer_lost), as when it dies
    a sandbox not made      failed and broken (sandbox): the program of a stage did not run, or not to its end
    a limit                 failed and broken (idle, wall, bytes, quota_exceeded), nothing left running
    all outputs closed      exited (closed), as soon as that is noticed
    cancelled, lost         this process writes no more; the store has broken its outputs already

While the store is out of reach the programs wait: nothing is read from them, and what was read is kept. They
are not given up, since they cannot be run again.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from fdstore import lifecycle
from fdstore.agent.agent import Finished
from fdstore.client import Store, StreamWriter
from fdstore.client.write_buffer import FINAL
from fdstore.errors import (
    FDStoreError,
    NotAllowed,
    NotFound,
    QuotaExceeded,
    StoreRefused,
    StoreUnavailable,
    StreamBroken,
    UnknownOutcome,
)
from fdstore.permissions import Permissions
from fdstore.runtime.lease import STOP_GRACE_S, Flag
from fdstore.runtime.periodic import run_periodically
from fdstore.store import following, pipelines, streams
from fdstore.store.content_info import ProcessHandle
from fdstore.store.pipelines import PipeFds
from fdstore.text.utf8 import Utf8Text
from fdstore.tools.task import PipeTask
from fdstore_workers.pipeline.command_limits import CommandsOff
from fdstore_workers.pipeline.pipes import BranchClosed
from fdstore_workers.pipeline.runner import Ended, Pipeline, StageLimits
from fdstore_workers.pipeline.sandbox import Sandbox

log = logging.getLogger("fdstore.pipelines")

LOOK_UP_EVERY_S = 0.2
FEED_WAIT_S = 0.5
STOP_KILL_S = 5.0
"""How long before the worker's own end a pipeline that still runs is killed."""


OUT_OF_REACH = (StoreUnavailable, StoreRefused, UnknownOutcome)
"""What passes when the store comes back, or takes this worker's password again."""

T = TypeVar("T")


def retrying(step: Callable[[], T], lost: threading.Event) -> T:
    """Takes a step that may be repeated until the store is there for it. Raises `StoreUnavailable` or
    `UnknownOutcome` when the process is known to be lost meanwhile."""
    while True:
        try:
            return step()
        except OUT_OF_REACH as error:
            log.warning("a pipeline waits for the store: %s", error)
            if lost.wait(FEED_WAIT_S):
                raise


class Branch:
    """One content that a pipeline writes: bytes of programs become text on the way."""

    def __init__(
        self, store: Store, handle: ProcessHandle, fd: str, page_size: int, lost: threading.Event
    ) -> None:
        self._lost = lost
        self._writer = StreamWriter(store.run, streams.own_appender(handle, fd, page_size))
        self._decoders: dict[int, Utf8Text] = {}
        self._closed = False
        self.over_quota = False

    @property
    def closed(self) -> bool:
        """Whether nobody holds it any more, as far as is known: a silent writer looks now and then."""
        return self._closed or self._writer.is_over

    @property
    def replaced(self) -> int:
        """Bytes so far that were not UTF-8."""
        return sum(decoder.replaced for decoder in self._decoders.values())

    def take(self, data: bytes, stage: int = 0) -> None:
        """Stores the output of a stage. Raises `BranchClosed` when nobody holds the content any more."""
        decoder = self._decoders.setdefault(stage, Utf8Text())
        self._write(decoder.feed(data))

    def say(self, text: str) -> None:
        """Adds a line of our own."""
        if not self.closed:
            self._write(text)

    def finish(self) -> None:
        """Stores characters that were begun and never ended."""
        for decoder in self._decoders.values():
            if (rest := decoder.end()) and not self.closed:
                self._write(rest)

    def end(self, exit_code: int, chain: str) -> None:
        """EOF."""
        self._leave(lambda: self._writer.end(exit_code, chain=chain))

    def break_off(self, reason: str) -> None:
        """Failure."""
        self._leave(lambda: self._writer.fail(reason))

    def _write(self, text: str) -> None:
        try:
            try:
                self._writer.write(text)
            except OUT_OF_REACH:
                retrying(self._writer.flush, self._lost)  # it has taken the text
        except FINAL as error:
            self._closed = True
            self.over_quota = isinstance(error, QuotaExceeded)
            raise BranchClosed from error

    def _leave(self, how: Callable[[], None]) -> None:
        # nobody reads it any more, or the store breaks it or has broken it: then the writer is done too
        with suppress(*FINAL, *OUT_OF_REACH):
            retrying(how, self._lost)


class Feed:
    """The input of a pipeline, from its beginning to its EOF, also while it grows."""

    def __init__(self, store: Store, handle: ProcessHandle, fd: str | None, lost: threading.Event) -> None:
        self._store, self._handle, self._fd, self._lost = store, handle, fd, lost
        self.broken: str | None = None

    def __iter__(self) -> Iterator[bytes]:
        if self._fd is None:
            return
        follower = following.Follower(self._handle, self._fd)
        while not follower.ended:
            try:
                text = self._store.run(follower.more(FEED_WAIT_S))
            except StreamBroken as error:
                self.broken = error.reason
                return
            except NotFound:
                # the hold on it ended with the process, which was cancelled or given up
                self.broken = lifecycle.CLOSED
                return
            except OUT_OF_REACH as error:
                log.warning("the input of a pipeline waits for the store: %s", error)
                self._lost.wait(FEED_WAIT_S)
                yield b""
                continue
            yield text.encode("utf-8")


def run_pipeline(
    sandbox: Callable[[], Sandbox],
    permissions: Permissions,
    store: Store,
    handle: ProcessHandle,
    brief: PipeTask,
    lost: threading.Event,
    stop: Flag,
) -> Finished:
    """Runs a pipeline to its end, and ends what it writes; how it ended."""
    fds = store.run(pipelines.fds_of(store.prefix, handle.id))
    if fds is None:
        return Finished("failed", None, "it is no pipeline", "")
    written = [fds.fd, fds.stderr_fd, *fds.tee_fds]
    output, error, *tees = [Branch(store, handle, fd, brief.page_size, lost) for fd in written]
    feed = Feed(store, handle, fds.in_fd, lost)
    try:
        permissions.check_commands(argv[0] for argv in brief.commands)
        place = sandbox()
        pipeline = Pipeline(
            brief.commands,
            output=output.take,
            error=lambda stage, data: error.take(data, stage),
            tee={stage: branch.take for stage, branch in zip(brief.tee, tees, strict=True)},
            feed=iter(feed) if fds.in_fd else None,
            command=place.wrap,
            reports=place.reports,
            environment=place.environment,
            limits=StageLimits(
                wall_s=brief.wall_seconds,
                idle_s=brief.stream_idle_seconds,
                stream_bytes=brief.stream_bytes,
            ),
        )
        ended = _watched(pipeline, [output, *tees], lost, stop)
    except FDStoreError as problem:
        for branch in (output, error, *tees):
            branch.break_off(problem.type)
        reason = problem.type
        if isinstance(problem, CommandsOff):
            reason = str(problem)
        elif isinstance(problem, NotAllowed):
            reason = f"{problem.type}: {problem}"
        return Finished("failed", None, reason, "")
    return _conclude(store, handle, fds, ended, feed, [output, error, *tees], lost, stopped=stop.is_set())


def _watched(pipeline: Pipeline, outputs: list[Branch], lost: threading.Event, stop: Flag) -> Ended:
    """Runs it, and kills it when its process is lost or cancelled, nobody reads it any more although it
    writes nothing, or the worker has to go."""
    leave_at = math.inf

    def look() -> bool:
        nonlocal leave_at
        if stop.is_set():
            leave_at = min(leave_at, time.monotonic() + STOP_GRACE_S - 2 * STOP_KILL_S)
        unread = all(branch.closed for branch in outputs)
        if lost.is_set() or unread or time.monotonic() >= leave_at:
            pipeline.kill(STOP_KILL_S)
            return False
        return True

    with run_periodically(LOOK_UP_EVERY_S, look, "pipeline watch"):
        return pipeline.run()


def _conclude(
    store: Store,
    handle: ProcessHandle,
    fds: PipeFds,
    ended: Ended,
    feed: Feed,
    branches: list[Branch],
    lost: threading.Event,
    *,
    stopped: bool,
) -> Finished:
    """Ends the contents as the pipeline ended; how the process ends."""
    output, error, *tees = branches
    try:
        for branch in branches:
            with suppress(BranchClosed):
                branch.finish()
        # the same bytes may have come to several outputs
        replaced = error.replaced + max(branch.replaced for branch in (output, *tees))
        if replaced:
            with suppress(BranchClosed):
                error.say(f"fdstore: {replaced} bytes were not UTF-8 and are shown as \\xNN\n")
        retrying(lambda: store.run(pipelines.note_codes(handle, ended.codes)), lost)
        before = retrying(lambda: store.run(pipelines.chain_of(handle, fds.in_fd)), lost)
    except FDStoreError:
        for branch in branches:
            branch.break_off(lifecycle.CANCELLED)
        raise
    chain = f"{before} {','.join(map(str, ended.codes))}".strip()
    failure = None
    if any(branch.over_quota for branch in branches):
        failure = lifecycle.QUOTA_EXCEEDED
    elif ended.reason == lifecycle.SANDBOX:
        log.warning("%s failed: the sandbox of a stage could not be made (its stderr says why)", handle.id)
        failure = lifecycle.SANDBOX
    elif ended.reason == lifecycle.CLOSED or all(branch.closed for branch in (output, *tees)):
        # it was ended because nobody wants more of it, which is no failure; its stderr is all there is
        error.end(ended.code, chain)
        for branch in (output, *tees):
            branch.break_off(lifecycle.CLOSED)
        return Finished("exited", ended.code, lifecycle.CLOSED, "")
    elif ended.reason == lifecycle.CANCELLED:
        failure = lifecycle.WORKER_LOST if stopped else lifecycle.CANCELLED
    elif ended.reason in (lifecycle.IDLE, lifecycle.WALL, lifecycle.BYTES):
        failure = ended.reason
    elif feed.broken is not None:
        failure = lifecycle.UPSTREAM_BROKEN
    if failure is not None:
        for branch in branches:
            # to a reader, a worker that has to go is what a worker that died is
            branch.break_off(lifecycle.WRITER_LOST if failure == lifecycle.WORKER_LOST else failure)
        return Finished("failed", ended.code, failure, "")
    if ended.signal is not None:
        for branch in branches:
            branch.break_off(f"signal {ended.signal}")
        return Finished("exited", ended.code, f"signal {ended.signal}", "")
    for branch in branches:
        branch.end(ended.code, chain)
    return Finished("exited", ended.code, "", "")
