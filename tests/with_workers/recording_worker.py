"""A worker whose task writes what it does into a Redis of the test, the ledger.

    recording_worker.py STORE_URL LEDGER_URL POOL CONCURRENCY [fan-out] [restore]

The process id says what the task does: `hold...` waits until the test lets it go on, `fail...` raises,
any other just ends. With `fan-out` the worker also subscribes to Celery's remote control, as a worker
of ours does not: with a pub/sub channel beside the queue's, kombu's defect shows. With `restore` it looks
for unacknowledged messages every moment, in place of every 100 s.
"""

from __future__ import annotations

import sys

import redis

from fdstore_workers.app import make_app, start_worker

HELD_AT_MOST_S = 60


def main(store_url: str, ledger_url: str, pool: str, concurrency: str, *more: str) -> int:
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
    if "restore" in more:
        app.conf.broker_transport_options |= {"unacked_restore_interval": 0.2, "unacked_restore_throttle": 1}
    return start_worker(app, int(concurrency), "prefork" if pool == "prefork" else "threads")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
