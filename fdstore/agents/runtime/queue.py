"""Wake the workers: put the id of a ready process into their queue, and nothing else.

The process record in the store is authoritative. A message only says "look at this process", so it may be
lost (the sweeper sends it again), duplicated or late (the claim decides), and it stays at about a kilobyte
whatever the agent works on.

The queue lives in a Redis (by default the store's own) in the layout of Celery and kombu. All its keys start
with `fdq:` and the store's key prefix, so stores with different prefixes can share a Redis, each with a user
restricted to `fdq:PREFIX:*`:

    fdq:fdstore:queue           list   wake-ups that no worker has received yet

Redis deletes the list when it becomes empty. What a worker has received is in no key: who is at work on a
process is in the process record. Messages use the anonymous exchange and one priority, so there are no
binding tables and no lists per priority. The list has no TTL and may not be evicted: the Redis needs
`noeviction`.

Workers build their application on the same `celery_app` (fdstore_workers/app.py). Celery takes longer to
import than all of fdstore, so it is imported when the first wake-up is sent, not with this module.
"""

from __future__ import annotations

import re
import threading
from typing import Any

from fdstore.agents.runtime.broker_url import Broker, find_broker
from fdstore.errors import (
    FDStoreError,
    StoreRefused,
    StoreUnavailable,
)
from fdstore.setup.settings import DEFAULT_PREFIX, queue_prefix

TASK = "fdstore.run"
"""Name of the only Celery task; its argument is a process id."""

QUEUE = "queue"
"""Name of a store's queue, after `queue_prefix`."""

SEND_TIMEOUT_S = 0.8
"""Time-out for connecting and for each reply. A caller waits for two tries at most."""

REFUSED = re.compile(
    "NOAUTH|WRONGPASS|NOPERM|Authentication required|invalid username-password|AUTH <password>|no permissions"
)
"""Redis's error texts for a refused user. redis-py strips the error code from some of them."""


def celery_config(broker: Broker, prefix: str = DEFAULT_PREFIX) -> dict[str, Any]:
    """Return the Celery settings that senders and workers of the store with this key prefix share."""
    return {
        "broker_url": broker.url,
        "broker_use_ssl": broker.tls or None,
        "broker_transport_options": {
            "global_keyprefix": queue_prefix(prefix),
            "priority_steps": [0],
            # not base64, so that `redis-cli LRANGE fdq:fdstore:queue 0 -1` shows the process ids
            "body_encoding": "utf-8",
            # leases find lost workers; kombu's hash of received messages would be a second opinion
            "ack_emulation": False,
            **broker.options,
        },
        "task_default_queue": QUEUE,
        # declaring would only write binding tables, which the anonymous exchange does not use
        "task_queues": {QUEUE: {"no_declare": True}},
        # so that a worker asks for no more messages than it has slots
        "task_acks_late": True,
        "worker_prefetch_multiplier": 1,
        "broker_connection_max_retries": None,
        # Remote control would add pub/sub channels and keys; `fdstore ps` and `kill` use the process records
        # instead.
        "worker_enable_remote_control": False,
    }


def celery_app(broker: Broker, prefix: str = DEFAULT_PREFIX) -> Any:
    """Return a Celery application for `broker`, isolated from any other application in this program."""
    from celery import Celery
    from celery.loaders.app import AppLoader
    from kombu.connection import Connection

    # Celery merges the module that $CELERY_CONFIG_MODULE names into the configuration, whatever was set. A
    # loader passed by name is imported with the current directory first on sys.path, and the fixup for Django
    # puts it there permanently.
    loader = type("Loader", (AppLoader,), {"read_configuration": lambda *_, **__: {}})
    app = Celery("fdstore", loader=loader, fixups=(), set_as_current=False)
    app.conf.update(celery_config(broker, prefix))
    app.backend_cls = "disabled://"
    # Celery logs this text; kombu's own hides passwords, but neither users nor those of several Sentinels
    app.amqp.Connection = type("Connection", (Connection,), {"as_uri": lambda *_, **__: broker.shown})

    connection_to = app.connection_for_write

    def connect(url: str | None = None, **options: Any) -> Any:
        return connection_to(broker.url, **options)

    # Celery prefers $CELERY_BROKER_URL and $CELERY_RESULT_BACKEND to the configuration. They belong to
    # some other application of this machine and must not redirect our messages.
    app.connection_for_read = app.connection_for_write = connect
    return app


class Dispatcher:
    """Sender of wake-ups. Thread-safe; keeps one connection. Create it after a fork.

    dispatcher = Dispatcher("redis://localhost:6379/0")
    dispatcher.wake("triage.1", "triage.2")
    """

    def __init__(
        self, store_url: str, broker_url: str | None = None, *, prefix: str = DEFAULT_PREFIX
    ) -> None:
        self._broker = find_broker(store_url, broker_url)
        self._prefix = prefix
        self._lock = threading.Lock()
        self._app: Any = None
        self._producer: Any = None

    def wake(self, *process_ids: str) -> None:
        """Send a wake-up for each of these processes.

        Raises `StoreUnavailable` within about 2 s when the broker is unreachable, `StoreFull` or
        `StoreReadOnly` when it refuses. Some may have been sent by then; sending all again is harmless.
        """
        # An unreachable broker holds the lock for up to two time-outs. Wait no longer for it, or a hundred
        # threads of a worker would time out one after the other.
        if not self._lock.acquire(timeout=2 * SEND_TIMEOUT_S):
            raise StoreUnavailable(self._broker.shown, "other wake-ups are still waiting for it")
        try:
            self._send(process_ids)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection. The next `wake` reconnects."""
        with self._lock:
            self._disconnect()

    def _send(self, process_ids: tuple[str, ...]) -> None:
        from kombu.exceptions import OperationalError

        # The second try is for an idle connection that a restart of Redis has closed.
        for is_last in (False, True):
            producer = self._connected()
            try:
                for process_id in process_ids:
                    self._app.send_task(
                        TASK,
                        args=[process_id],
                        queue=QUEUE,
                        producer=producer,
                        argsrepr="...",  # otherwise the message contains the id twice
                        retry=False,
                        # a running Celery task keeps a list of the tasks it sent
                        add_to_parent=False,
                    )
                return
            except producer.connection.channel_errors as error:
                self._disconnect()
                raise _translate(error, self._broker.shown) from error
            except (OperationalError, *producer.connection.connection_errors) as error:
                self._disconnect()
                if is_last:
                    raise _translate(error, self._broker.shown) from error

    def _connected(self) -> Any:
        """Return the producer, connecting first if necessary."""
        if self._app is None:
            self._app = celery_app(self._broker, self._prefix)
            self._app.conf.broker_connection_timeout = SEND_TIMEOUT_S
            self._app.conf.broker_transport_options |= {
                "socket_timeout": SEND_TIMEOUT_S,
                "socket_connect_timeout": SEND_TIMEOUT_S,
                # otherwise kombu retries the connection forever, with pauses
                "max_retries": 1,
                "interval_start": 0,
                "interval_step": 0,
            }
        if self._producer is None:
            connection = self._app.connection_for_write()
            self._producer = self._app.amqp.Producer(connection, auto_declare=False)
        return self._producer

    def _disconnect(self) -> None:
        if self._producer is not None:
            self._producer.connection.release()
            self._producer = None


def _translate(error: Exception, where: str) -> FDStoreError:
    from fdstore.wire.redis_errors import refusal_code, translate

    message = str(error)
    if refusal_code(error) or "'maxmemory'" in message:
        return translate(error, where)
    if REFUSED.search(message):
        return StoreRefused(where, message.rstrip("."), "check the user and the password in the queue's URL")
    return StoreUnavailable(where, message)
