"""The bodies of the processes that a worker's supervisor forks. One of them consumes messages: it has the
Celery application, its task and the sweeper.

    SIGTERM ─┬─ consumes no more messages
             ├─ releases agents between two steps, or pausing, immediately
             ├─ lets agents finish a step, but releases them after 20 s
             └─ exits when its tasks have ended, or a little later without them

It exits without tasks that wait for a model or run a user's function: a thread cannot be killed, and the
store fences off its later writes.
"""

from __future__ import annotations

import gc
import logging
import mmap
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from celery import signals

from fdstore.agents.loop.models.providers import access_here, import_client
from fdstore.agents.runtime import claim
from fdstore.agents.runtime.eligibility import describe_permissions
from fdstore.agents.runtime.waker import waker
from fdstore.client import Store, connect
from fdstore.errors import STORE_FAILURES, FDStoreError
from fdstore.files.permissions import parse_permissions
from fdstore.local.redis_server import is_embedded
from fdstore.model.providers import DEFAULT_PROVIDER
from fdstore.setup.logs import LogFormat, log_to_stderr
from fdstore.setup.settings import read_otel
from fdstore.setup.signal_waits import SIGNALS_SEEN_S
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases
from fdstore.telemetry import otel, tracing
from fdstore.telemetry.counts import count
from fdstore_workers.app import make_app, start_worker
from fdstore_workers.load_board import LoadBoard
from fdstore_workers.pipeline.choose_sandbox import Engine, find_sandbox
from fdstore_workers.pipeline.run_pipeline import run_pipeline
from fdstore_workers.pipeline.unsandboxed import CommandsDisabled
from fdstore_workers.reports import Reporter
from fdstore_workers.status_server import StatusPort, WorkerStatus
from fdstore_workers.supervisor import HeldProcess, Roles, Supervisor
from fdstore_workers.sweeper import Sweeper, carry_out, losses_allowed
from fdstore_workers.tasks import Clients, WorkerSettings, attempt, make_task_body

log = logging.getLogger("fdstore.worker")

GARBAGE_OBJECTS = 20_000
"""Threshold of Python's garbage collector. With the default of 700 new objects, collections take 5 % of the
processor of a worker with 200 agents; reference counting frees what an agent held."""

PIPELINES = 64
"""Pipelines that run at the same time, besides the agents; others wait."""

RETRY_EVERY_S = 0.5

LEAVE_AFTER_S = 3.0
"""The time that a task may continue after the last process was released: lease renewal polls every half
second, and Redis may need a retry."""


class Stopping:
    """A flag that later forks share. Shared memory without a lock: a signal handler sets it, and a killed
    process could hold a lock."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 1)

    def set(self) -> None:
        self._shared[0] = 1

    def is_set(self) -> bool:
        return self._shared[0] == 1


class ShutdownTimer:
    """Exits this process some time after `stopping` is set, even if tasks still run."""

    def __init__(self, stopping: Stopping, leave: Callable[[], None]) -> None:
        self._stopping = stopping
        self._leave = leave
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shutdown_timer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """Cancel the timer: the worker has ended by itself."""
        self._over.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._over.wait(claim.POLL_S):
                return
        if self._over.wait(claim.STOP_GRACE_S + LEAVE_AFTER_S):
            return
        log.warning("exits in the middle of a step; its process was released")
        self._leave()
        logging.shutdown()
        os._exit(0)


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a worker, with the bodies of its forked processes (`Roles`)."""

    name: str
    url: str | None
    prefix: str | None
    broker_url: str | None
    concurrency: int
    pool: Literal["threads", "prefork"]
    allow_python: Sequence[str] = ()
    allow_commands: Sequence[str] = ()
    export_root: str | None = None
    preload_root: str | None = None
    allow_model_servers: Sequence[str] = ()
    engine: Engine = "auto"
    log_level: str = "INFO"
    log_format: LogFormat = "text"
    unsandboxed_commands: bool = False
    status: StatusPort | None = None
    board: LoadBoard = msgspec.field(default_factory=LoadBoard)

    def supervise(self) -> int:
        """Run the worker in child processes until SIGTERM. Return the exit status."""
        log_to_stderr(self.log_level, self.log_format)
        if self.status is not None:
            log.info("metrics and probes at http://%s:%d", *self.status.listener.getsockname()[:2])
        return Supervisor(Roles(self.work, self.run_alone, self.release), self.concurrency, self.board).run()

    def work(self, reporter: Reporter) -> int:
        """Consume messages until SIGTERM; return the exit status. Raises `StoreUnavailable` or
        `UnsafeStore`."""
        gc.set_threshold(GARBAGE_OBJECTS)
        flush = otel.configure(read_otel())
        count("fdstore_worker_starts_total")
        store = connect(self.url, self.prefix)
        stopping = Stopping()
        settings = self._worker_settings(store)
        if self.pool == "prefork":  # its processes share what was imported before they are forked
            for provider, lack in settings.permissions.models.keyless.items():
                if not lack:
                    import_client(provider)
        if not settings.runs_agents:
            log.warning("runs pipelines only, and leaves agents to other workers: %s", settings.no_agents)
        elif settings.no_agents:
            log.warning("runs only agents of programs that name a server of models: %s", settings.no_agents)
        permissions = settings.permissions
        roots = (os.getcwd(), permissions.export_root, permissions.preload_root)
        private = [Path(root) for root in roots if root]
        allow = self.unsandboxed_commands
        sandbox = cache(partial(find_sandbox, engine=self.engine, allow_unsandboxed=allow, private=private))
        if isinstance(engine := sandbox(), CommandsDisabled):
            permissions = msgspec.structs.replace(permissions, commands_off=engine.why)
            settings = msgspec.structs.replace(settings, permissions=permissions)
        # with prefork, pipelines run in the processes of the pool
        apart = ThreadPoolExecutor(PIPELINES, "pipeline") if self.pool == "threads" else None
        clients = Clients(settings)
        run = make_task_body(clients, reporter, stopping, partial(run_pipeline, sandbox, permissions), apart)
        app = make_app(store.url, self.broker_url, run=run, prefix=store.prefix)
        wake = waker(store.url, store.prefix, self.broker_url)
        commands = "; ".join(filter(None, (permissions.described, engine.describe())))
        allowed = describe_permissions(permissions)
        sweeper = Sweeper(store, self.name, wake, commands, settings.no_agents, allowed, self.board.read)

        status = WorkerStatus(self.status, store, self.broker_url, sweeper, stopping, self.board.read)

        def leave() -> None:
            sweeper.stop()
            flush()

        shutdown_timer = ShutdownTimer(stopping, leave)

        def begin(sender: Any, **_: Any) -> None:
            sweeper.start()
            status.started(sender.hub)
            shutdown_timer.start()
            reporter.beat()
            reporter.ready()
            log.info("this worker is %s", self.name)
            if os.geteuid() == 0:
                log.warning("runs as root: give it a user of its own, as deploy/fdstore-worker@.service does")

        def stop(**_: Any) -> None:
            stopping.set()

        def take(request: Any, **_: Any) -> None:
            reporter.take(request.args[0])

        signals.worker_ready.connect(begin, dispatch_uid="fdstore sweeper")
        signals.worker_shutting_down.connect(stop, dispatch_uid="fdstore stopping")
        signals.task_received.connect(take, dispatch_uid="fdstore supervisor")

        def begin_in_pool(**_: Any) -> None:
            tracing.forget_context()  # that of the loop which polls the queue
            reporter.beat()

        signals.worker_process_init.connect(begin_in_pool, dispatch_uid="fdstore pool")
        signals.worker_process_shutdown.connect(
            lambda **_: flush(), weak=False, dispatch_uid="fdstore telemetry"
        )
        try:
            return start_worker(app, self.concurrency, self.pool)
        finally:
            if apart is not None:
                stopping.set()
                apart.shutdown()  # the shutdown timer bounds this
            shutdown_timer.cancel()
            sweeper.stop()
            clients.left.stop()
            status.close()
            store.close()
            flush()

    def run_alone(self, reporter: Reporter, process: str) -> int:
        """Run one process until it has passed the point where it was lost."""
        flush = otel.configure(read_otel())
        stopping = Stopping()
        reporter.beat()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, lambda *_: stopping.set())
        with connect(self.url, self.prefix) as store:
            clients = Clients(self._worker_settings(store))
        shutdown_timer = ShutdownTimer(stopping, flush)
        shutdown_timer.start()
        # in a thread, so that the main thread runs signal handlers even while a tool blocks
        running = threading.Thread(
            target=attempt, args=(clients, process, reporter, stopping), kwargs={"company": "none for long"}
        )
        running.start()
        while running.is_alive():
            running.join(SIGNALS_SEEN_S)
        shutdown_timer.cancel()
        flush()
        return 0

    def release(self, what: str, held: list[HeldProcess], taken: list[str]) -> int:
        """Release the processes that a dead process held, and wake those that it had not started."""
        with connect(self.url, self.prefix) as store:
            wake = waker(store.url, store.prefix, self.broker_url)
            count = release_held(store, wake, held)
            for process in taken:
                wake(process)
        if held:
            log.warning("%s: %d of the %d processes that it held were given back", what, count, len(held))
        else:
            log.info("%s: the %d processes that it had not started were woken", what, len(taken))
        return 0

    def _worker_settings(self, store: Store) -> WorkerSettings:
        permissions = parse_permissions(
            embedded=is_embedded(store.url),
            python=self.allow_python,
            commands=self.allow_commands,
            export_root=self.export_root,
            preload_root=self.preload_root,
            model_servers=self.allow_model_servers,
        )
        models = access_here(permissions.models)
        return WorkerSettings(
            worker=self.name,
            url=store.url,
            prefix=store.prefix,
            broker_url=self.broker_url,
            permissions=msgspec.structs.replace(permissions, models=models),
            no_agents=models.keyless[DEFAULT_PROVIDER] if all(models.keyless.values()) else "",
            runs_agents=models.names_any or not all(models.keyless.values()),
        )


def release_held(store: Store, wake: Callable[[str], None], held: Iterable[HeldProcess]) -> int:
    """Count a loss for each process that is still held, against it if it is to blame, and wake other workers;
    fail pipelines.

    This does at once for a dead process of a worker what the sweep would do later. A process that another
    worker has claimed meanwhile is left alone. Returns the number of processes. Retries store failures until
    the leases have expired.
    """
    until = time.monotonic() + leases.LEASE_S
    count = 0
    for each in held:
        while True:
            try:
                count += _record_loss(store, wake, each)
            except STORE_FAILURES as error:
                if time.monotonic() >= until:
                    log.warning("%s is left to the sweep: %s", each.process, error)
                    return count
                time.sleep(RETRY_EVERY_S)
                continue
            except FDStoreError as error:
                log.info("%s needs no recovery: %s", each.process, error)
            break
    return count


def _record_loss(store: Store, wake: Callable[[str], None], held: HeldProcess) -> bool:
    keys = process_keys(store.prefix, held.process)
    allowed = store.run(losses_allowed(keys))
    lapsed = store.run(leases.record_loss(keys, held.claim, allowed, is_to_blame=held.is_to_blame))
    carry_out(store, wake, keys, lapsed)
    return lapsed.decision != "nothing"
