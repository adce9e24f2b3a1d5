"""Pipelines that wait for a free slot in a worker that receives a stop signal."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import redis

import fdstore
from fdstore.files.permissions import Permissions
from fdstore.local.redis_server import PrivateServer
from fdstore.model.lifecycle import ProcessEnd
from fdstore.store.processes import pipelines, process_records
from fdstore.tools.process_task import PipeTask, encode_task
from fdstore_workers.reports import Reporter
from fdstore_workers.tasks import Clients, WorkerSettings, make_task_body
from tests.waiting import PATIENCE_S, wait_until


def test_a_worker_that_stops_leaves_its_waiting_pipelines_in_the_queue(agents_server: PrivateServer) -> None:
    stopping, began, ran = threading.Event(), threading.Event(), []

    def run_pipeline(store: Any, handle: Any, *_: Any) -> ProcessEnd:
        ran.append(handle.id)
        began.set()
        stopping.wait(PATIENCE_S)
        return ProcessEnd("exited", 0, "")

    url = agents_server.url
    place = WorkerSettings(worker="w", url=url, prefix="fdstore", broker_url=None, permissions=Permissions())
    brief = encode_task(PipeTask(commands=[["true"]], page_size=4000))
    with fdstore.connect(url) as store, redis.Redis.from_url(url) as client:
        root = store.process("solo")
        made = [store.run(pipelines.start(root.handle, brief, title="true")).process for _ in range(3)]
        with ThreadPoolExecutor(1) as apart:
            run = make_task_body(Clients(place), Reporter(), stopping, run_pipeline, apart)
            for process in made:
                run(process)
            assert began.wait(PATIENCE_S)
            stopping.set()

        wait_until(lambda: sum(client.llen(key) for key in client.keys("fdq:*")) == 2)
        records = [store.run(process_records.record("fdstore", process)) for process in made]

    assert ran == made[:1]
    assert [(record.state, record.attempt) for record in records] == [
        ("exited", 1),
        ("ready", 0),
        ("ready", 0),
    ]
