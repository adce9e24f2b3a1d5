"""A worker whose task records its actions in a second Redis, the ledger; started from a template.

    recording_worker.py STORE_URL LEDGER_URL POOL CONCURRENCY [fan-out]

The process id selects the action: `hold...` waits until the test releases it, `fail...` raises, any other
returns. With `fan-out` the worker also subscribes to Celery's remote control, which our workers do not: a
pub/sub channel beside the queue's triggers a defect of kombu with unacknowledged messages.
"""

from __future__ import annotations

import sys

import redis

from fdstore_workers.app import make_app, start_worker

HELD_AT_MOST_S = 60


def main() -> int:
    store_url, ledger_url, pool, concurrency, *more = sys.argv[1:]

    def run(process_id: str) -> None:
        with redis.Redis.from_url(ledger_url, socket_timeout=None) as ledger:
            ledger.rpush("begun", process_id)
            if process_id.startswith("hold"):
                ledger.blpop([f"release:{process_id}"], timeout=HELD_AT_MOST_S)
            if process_id.startswith("fail"):
                raise ValueError("as the test wished")
            ledger.rpush("ended", process_id)

    app = make_app(store_url, run=run)
    app.conf.worker_enable_remote_control = "fan-out" in more
    return start_worker(app, int(concurrency), "prefork" if pool == "prefork" else "threads")
