"""The worker process: takes process ids from the queue and hands each to the function that runs one.

All it knows of a task is `run(process_id)`; what that does (claim, lease, loop) is the business of
tasks.py. `run` returns when the worker has nothing more to do for that process now, which is
also when the message is acknowledged. An exception of `run` is logged, and ends that message alone.

Threads are the default pool: agents wait for models nearly all their time, and 200 of them are 200
threads but would be 200 interpreters. With `prefork` each task has a process of its own, forked
before `run` is called for the first time there: `run` must open its store, broker and model clients
itself (or once per process id of the operating system), never inherit them from the module that
called `make_app`.

When the broker goes away the worker stays, connects again every few seconds (with growing pauses, up
to half a minute) for ever, and consumes on. Running tasks go on: it is a lease that says who runs a
process, so their messages may come again, and do nothing.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from celery import signals
from celery.concurrency import thread

from fdstore.logs import VisibleFormatter
from fdstore.runtime.queue import TASK, celery_app, find_broker
from fdstore.settings import DEFAULT_PREFIX
from fdstore_workers.transport import RESTORE_AT_ONCE, quote_url

log = logging.getLogger("fdstore.worker")

SOCKET_TIMEOUT_S = 10.0
"""How long a worker waits for a reply of the broker before it takes the connection for lost. Without
one a peer that vanished in silence (a fail-over, a firewall) would hold the main loop for ever."""


def _leave_alone(pool: Any, pid: int, number: int | None = None) -> None:
    """What a second Ctrl-C does to a task in a thread, which cannot be ended from outside: nothing. Its
    lease is given back in time."""


# Celery's own raises there. A class statement would need Celery to be typed.
ThreadPool: Any = type("ThreadPool", (thread.TaskPool,), {"terminate_job": _leave_alone})


def make_app(
    store_url: str,
    broker_url: str | None = None,
    *,
    run: Callable[[str], None],
    prefix: str = DEFAULT_PREFIX,
) -> Any:
    """The worker's Celery application, with `run` as the body of its one task.

    URLs as for `fdstore.runtime.queue.find_broker`. Connects to nothing yet.
    """
    broker = find_broker(store_url, broker_url)
    app = celery_app(msgspec.structs.replace(broker, url=quote_url(broker.url)), prefix)
    app.conf.broker_transport_options |= {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": SOCKET_TIMEOUT_S,
        "socket_keepalive": True,
        "unacked_restore_limit": RESTORE_AT_ONCE,
    }
    app.conf.worker_disable_rate_limits = True

    def run_process(process_id: str) -> None:
        run(process_id)

    app.task(name=TASK)(run_process)
    return app


def start_worker(app: Any, concurrency: int, pool: Literal["threads", "prefork"] = "threads") -> int:
    """Work in this process, `concurrency` tasks at a time, until a signal ends it.

    TERM or INT: take no more messages, let the running tasks end, return. A thread cannot be ended
    from outside, so a long task should listen to Celery's signal `worker_shutting_down` and come to a
    good end by itself; prefork ends its tasks at once on QUIT or a second INT. A worker that is killed
    loses nothing but time: leases run out and others go on.

    Must be called in the main thread. Returns an exit status: 0 after TERM.
    """
    signals.setup_logging.connect(log_to_stderr, dispatch_uid="fdstore")
    worker = app.Worker(
        hostname=f"fdstore-{os.getpid()}@{socket.gethostname()}",
        pool=ThreadPool if pool == "threads" else pool,
        concurrency=concurrency,
        loglevel="WARNING",
        quiet=True,
        # each of these is chatter among workers, who have nothing to tell each other
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )

    def say_ready(**_: Any) -> None:
        where = app.connection_for_read().as_uri()
        queue = app.conf.broker_transport_options["global_keyprefix"] + app.conf.task_default_queue
        log.info("ready: %d %s take from queue %s at %s", concurrency, pool, queue, where)

    signals.worker_ready.connect(say_ready, dispatch_uid="fdstore")
    try:
        worker.start()
    finally:
        signals.worker_ready.disconnect(dispatch_uid="fdstore")
        signals.setup_logging.disconnect(dispatch_uid="fdstore")
    return worker.exitcode or 0


def log_to_stderr(level: str = "INFO", **_: Any) -> None:
    """Log to stderr: fdstore from `level` on, packages from WARNING on. In place of Celery's own set-up,
    which takes the root logger from the program around it. A second call changes nothing."""
    if logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(VisibleFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("fdstore").setLevel(level)
