"""The Celery application of a worker: consumes process ids from the queue and passes each to `run`.

This module knows nothing of a task but `run(process_id)`; tasks.py claims, leases and runs the process. `run`
returns when the worker has nothing more to do for that process now; then it asks for another message. An
exception of `run` is logged and affects that message only.

Threads are the default pool: agents spend nearly all their time waiting for models, and 200 of them need 200
threads instead of 200 interpreters. With `prefork` each task runs in a process that was forked before its
first `run`: `run` must open the clients of store, broker and model itself (once per operating-system
process), and never inherit them from the caller of `make_app`.

When the broker goes away, the worker reconnects without limit, at growing intervals of up to 5 s, and says so
once a minute. Running tasks continue.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import secrets
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from celery import signals
from celery.apps import worker as celery_program
from celery.concurrency import thread
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning
from celery.worker.consumer import consumer
from kombu.connection import Connection
from kombu.transport import redis as redis_transport

from fdstore.agents.runtime.broker_url import find_broker
from fdstore.agents.runtime.queue import TASK, celery_app
from fdstore.agents.runtime.store_wait import SAY_EVERY_S
from fdstore.setup.logs import log_to_stderr
from fdstore.setup.settings import DEFAULT_PREFIX
from fdstore.telemetry.tracing import untraced
from fdstore_workers.forks import die_with_parent
from fdstore_workers.transport import quote_url

log = logging.getLogger("fdstore.worker")

ENDING = "ends: takes nothing more, and lets what runs finish its step"

SOCKET_TIMEOUT_S = 10.0
"""The time that a worker waits for a reply of the broker before it closes the connection. Without a time-out,
a peer that disappeared silently (a fail-over, a firewall) would block the main loop for ever."""

CHECK_EVERY_S = 5.0
"""The interval of kombu's checks for an overdue reply. No time-out of a socket applies while the worker waits
for a message; with kombu's 25 s a worker takes none for up to 51 s after its connection fell silent."""

RECONNECT_AFTER_S, LONGEST_RECONNECT_S = 1.0, 5.0
"""The pauses between attempts to reconnect: each longer than the one before by the first. With the 30 s of
Celery a worker would take no message for that long after the broker is there again."""


class _OnceAMinute(logging.Filter):
    """Passes a line about a lost connection if it was not said in the last minute, without a traceback: a
    worker that waits for its queue is no defect."""

    def __init__(self) -> None:
        super().__init__()
        self._silent_until: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log this."""
        said, now = str(record.msg), time.monotonic()
        if now < self._silent_until.get(said, now):
            return False
        self._silent_until[said] = now + SAY_EVERY_S
        record.exc_info = record.exc_text = None
        return True


_of_connections = _OnceAMinute()


def _lower_to_info(record: logging.LogRecord) -> bool:
    """Lower a warning of kombu to INFO: it replaces a connection without a reply. If it cannot connect again,
    the worker logs a warning itself."""
    record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    return True


def _leave_alone(pool: Any, pid: int, number: int | None = None) -> None:
    """Do nothing for a second Ctrl-C: a thread cannot be killed. The lease is released in time anyway."""


# Celery's own pool raises there. A class statement would need type hints in Celery.
ThreadPool: Any = type("ThreadPool", (thread.TaskPool,), {"terminate_job": _leave_alone})


def _reconnect(connection: Any, *arguments: Any, **options: Any) -> Any:
    """Connect, as kombu does, with our pauses."""
    pauses = {
        "interval_start": RECONNECT_AFTER_S,
        "interval_step": RECONNECT_AFTER_S,
        "interval_max": LONGEST_RECONNECT_S,
    }
    connect: Any = Connection.ensure_connection
    return connect(connection, *arguments, **pauses, **options)


def make_app(
    store_url: str,
    broker_url: str | None = None,
    *,
    run: Callable[[str], None],
    prefix: str = DEFAULT_PREFIX,
) -> Any:
    """Return the worker's Celery application, with `run` as the body of its only task.

    For the URLs see `fdstore.agents.runtime.queue.find_broker`. Does not connect yet.
    """
    broker = find_broker(store_url, broker_url)
    app = celery_app(msgspec.structs.replace(broker, url=quote_url(broker.url)), prefix)
    app.amqp.Connection = type("Connection", (app.amqp.Connection,), {"ensure_connection": _reconnect})
    app.conf.broker_transport_options |= {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": SOCKET_TIMEOUT_S,
        "health_check_interval": CHECK_EVERY_S,
    }

    def run_process(process_id: str) -> None:
        run(process_id)

    app.task(name=TASK)(run_process)
    return app


def start_worker(app: Any, concurrency: int, pool: Literal["threads", "prefork"] = "threads") -> int:
    """Consume messages in this process, `concurrency` tasks at a time, until a signal ends it.

    SIGTERM or SIGINT: stop consuming, let the running tasks finish, return. A thread cannot be killed, so a
    long task should handle Celery's signal `worker_shutting_down` and finish by itself; prefork kills its
    tasks on SIGQUIT or a second SIGINT. A killed worker loses only time: leases expire and other workers
    continue.

    Call this in the main thread. Returns an exit status: 0 after SIGTERM.
    """
    signals.setup_logging.connect(log_to_stderr, dispatch_uid="fdstore")
    logging.getLogger(consumer.__name__).addFilter(_of_connections)
    logging.getLogger(redis_transport.__name__).addFilter(_lower_to_info)
    # Celery's words of a shutdown and of root name kinds and options that our workers do not have
    celery_program.safe_say = lambda *_, **__: None
    warnings.filterwarnings("ignore", category=SecurityWarning)
    if pool == "prefork":
        _share_memory_without_a_directory()
        # an orphaned pool process would go on with what the supervisor has released
        supervisor = os.getpid()
        signals.worker_process_init.connect(
            lambda **_: die_with_parent(supervisor), weak=False, dispatch_uid="fdstore supervisor"
        )
    worker = app.Worker(
        hostname=f"fdstore-{os.getpid()}-{secrets.token_hex(3)}@{socket.gethostname()}",
        pool=ThreadPool if pool == "threads" else pool,
        concurrency=concurrency,
        loglevel="WARNING",
        quiet=True,
        # our workers do not need to communicate with each other
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )

    def log_ready(**_: Any) -> None:
        # of its next version, at each lost connection; Celery has by now set a filter that shows it
        warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
        where = app.connection_for_read().as_uri()
        queue = app.conf.broker_transport_options["global_keyprefix"] + app.conf.task_default_queue
        log.info("ready: %d %s take from queue %s at %s", concurrency, pool, queue, where)

    def log_ending(**_: Any) -> None:  # in a signal handler, which may have interrupted a line of the log
        threading.Thread(target=log.info, args=(ENDING,)).start()

    signals.worker_ready.connect(log_ready, dispatch_uid="fdstore")
    signals.worker_shutting_down.connect(log_ending, dispatch_uid="fdstore")
    traced = untraced()  # here the queue is polled; tasks run in other threads
    try:
        worker.start()
    finally:
        traced()
        signals.worker_shutting_down.disconnect(dispatch_uid="fdstore")
        signals.worker_ready.disconnect(dispatch_uid="fdstore")
        signals.setup_logging.disconnect(dispatch_uid="fdstore")
    return worker.exitcode or 0


def _share_memory_without_a_directory() -> None:
    """Put the files of memory that pool processes share into the directory for temporary files itself.

    They are unlinked as soon as they are open. The directory that multiprocessing would make for them is
    removed by an exit handler, which neither a killed process runs nor one that exits by `os._exit`, as ours
    do.
    """
    vars(multiprocessing.current_process())["_config"]["tempdir"] = tempfile.gettempdir()
