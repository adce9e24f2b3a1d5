"""The signals of real workers for operators: one trace over workers and takeovers, counts that outlive a
killed process, and JSON logs."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from fdstore.local.redis_server import PrivateServer
from fdstore.model.records import ProcessRecord
from fdstore.telemetry.metric_table import COUNTED
from fdstore.testing import Request, call, say, turn
from fdstore_workers.status_server import GAUGES
from tests.waiting import PATIENCE_S, wait_until
from tests.with_workers.agent_harness import AgentHarness, open_harness
from tests.with_workers.conftest import agent_workers
from tests.worker_process import WorkerProcess

SECRET = "hunter2 is my password"


class Collector:
    """A collector of OpenTelemetry on the loopback address, which keeps the spans."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = ExportTraceServiceRequest()
                sent.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                for resource in sent.resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans.extend(scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.environ = {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}/v1/traces",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_SERVICE_NAME": "fdstore-worker",
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


class Observed(NamedTuple):
    """The signals seen of two workers that ran a parent and two children, one of which lost its process."""

    collector: Collector
    harness: AgentHarness
    root: str
    pages: list[str]
    logs: str


def page_of(worker: WorkerProcess, path: str = "/metrics") -> str:
    found = re.search(r"http://127\.0\.0\.1:(\d+)", worker.log)
    assert found, worker.log
    connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=PATIENCE_S)
    connection.request("GET", path)
    page = connection.getresponse().read().decode()
    connection.close()
    return page


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("signals")
    collector = Collector()
    os.environ.update(collector.environ)
    try:
        with (
            PrivateServer() as server,
            agent_workers(folder) as start,
            open_harness(server, folder, start) as harness,
        ):
            yield run(folder, collector, harness)
    finally:
        for name in collector.environ:
            del os.environ[name]
        collector.close()


def run(folder: Path, collector: Collector, harness: AgentHarness) -> Observed:
    harness.program("root", tools="spawn read_fd", links="reader")
    harness.program("reader", tools="read_fd")
    both, has_begun, goes_on = threading.Barrier(2, timeout=PATIENCE_S), threading.Event(), threading.Event()

    def reader(request: Request) -> Any:
        if request.turn_number == 0:
            both.wait()  # so that each worker has one
            return call("lines", count=20_000)
        if not has_begun.is_set():
            has_begun.set()
            goes_on.wait(PATIENCE_S)
        return say(SECRET)

    spawn = call("spawn", program_name="reader", query=SECRET)
    harness.set_script({"ROOT": [turn(spawn, spawn), say("Done.")], "READER": reader})
    more = ("--metrics-port", "0", "--log-format", "json", "--log-level", "debug")
    workers = [harness.start_worker(1, "threads", *more) for _ in range(2)]
    root = harness.launch(SECRET)
    assert has_begun.wait(PATIENCE_S)
    wait_until(lambda: len(running_children(harness, root)) == 1, what="the end of the other child")
    [lost] = running_children(harness, root)
    [held] = [worker for worker in workers if worker.name == lost.worker]
    wait_until(lambda: len(collector.named("execute_tool lines")) == 2, what="the spans of the tools")
    os.kill(held.working_pid, signal.SIGKILL)
    goes_on.set()
    harness.wait(root)
    wait_until(lambda: len(collector.named("invoke_agent root")) >= 2, what="the last span")
    wait_until(lambda: "fdstore_sweep_lag_seconds " in page_of(workers[0]), what="a sweep")
    pages = [page_of(worker) for worker in workers]
    logs = "".join(worker.log for worker in workers)
    return Observed(collector, harness, root, pages, logs)


def running_children(harness: AgentHarness, root: str) -> list[ProcessRecord]:
    members = harness.store.tree(root).members
    return [each for each in members if each.parent and each.state == "running"]


def attributes(span: Span) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_a_tree_has_one_trace_over_workers_and_takeovers(observed: Observed) -> None:
    spans = observed.collector.spans

    assert len({span.trace_id for span in spans}) == 1
    by_id = {span.span_id: span for span in spans}
    spawns = {span.span_id for span in observed.collector.named("execute_tool spawn")}
    children = observed.collector.named("invoke_agent reader")
    assert {attributes(span)["fdstore.process"] for span in children} == {
        f"{observed.root}.1",
        f"{observed.root}.2",
    }
    assert {span.parent_span_id for span in children} <= spawns
    # it runs alone until it is past the point of the loss, then perhaps once more among others
    taken_over, *_ = sorted(
        (span for span in children if attributes(span)["fdstore.losses"]),
        key=lambda span: attributes(span)["fdstore.attempt"],
    )
    assert attributes(taken_over)["fdstore.attempt"] == 2
    lost = taken_over.links[0].span_id
    assert lost not in by_id, "the span of a killed attempt is never sent"
    [before] = [
        span for span in observed.collector.named("execute_tool lines") if span.parent_span_id == lost
    ]
    assert before.trace_id == taken_over.trace_id
    roots = observed.collector.named("invoke_agent root")
    assert {attributes(span)["fdstore.ending"] for span in roots} == {"waiting", "ended"}
    assert {span.parent_span_id for span in observed.collector.named("chat any")} <= {
        *(span.span_id for span in (*children, *roots)),
        lost,
    }


def test_spans_follow_the_conventions_and_hold_no_content(observed: Observed) -> None:
    tool = attributes(observed.collector.named("execute_tool lines")[0])
    chat = attributes(observed.collector.named("chat any")[0])
    agent = attributes(observed.collector.named("invoke_agent reader")[0])

    assert tool["gen_ai.operation.name"] == "execute_tool"
    assert tool["gen_ai.tool.type"] == "function"
    assert re.fullmatch(rf"fdstore://{observed.root}\.[12]/fd:\d+", tool["gen_ai.tool.call.result"])
    assert (chat["gen_ai.operation.name"], chat["gen_ai.request.model"]) == ("chat", "any")
    assert chat["gen_ai.usage.output_tokens"] > 0
    assert (agent["gen_ai.agent.name"], agent["gen_ai.conversation.id"]) == ("reader", observed.root)
    stores = [span for span in observed.collector.spans if span.kind == Span.SPAN_KIND_CLIENT]
    assert "fdstore Toolbox.start" in {span.name for span in stores}
    operations = [span for span in stores if span.name.startswith("fdstore ")]
    assert {attributes(span)["db.operation.name"] for span in operations} == {"read", "write"}
    assert all(span.parent_span_id for span in stores), "polling and sweeping make no spans"
    everything = b"".join(span.SerializeToString() for span in observed.collector.spans)
    assert SECRET.encode() not in everything
    assert b"line 1" not in everything


def number(page: str, series: str) -> float:
    return sum(
        float(line.rpartition(" ")[2]) for line in page.splitlines() if re.match(rf"{series}(\{{| )", line)
    )


def test_counts_of_a_killed_process_stay_and_show_the_takeover(observed: Observed) -> None:
    def total(series: str) -> float:
        return sum(number(page, series) for page in observed.pages)

    assert total("fdstore_worker_starts_total") == 3
    assert total("fdstore_process_losses_total") == 1
    assert total("fdstore_process_takeovers_total") == 1
    # two of the root and of each child; the answer that was killed is asked for again
    assert total("fdstore_model_turns_total") == 6
    # each spawn starts its child, and goes on waiting once the root is woken
    assert total("fdstore_tool_calls_total") == 6
    assert total("fdstore_tool_duration_seconds_count") == 6
    assert total("fdstore_process_ends_total") == 3
    assert total("fdstore_saved_chars") > 2 * 100_000
    assert number(observed.pages[0], "fdstore_store_workers") == 2


def test_a_worker_serves_the_metrics_of_the_table(observed: Observed) -> None:
    shown = set(re.findall(r"(?m)^# TYPE (\w+) ", "".join(observed.pages)))

    expected = {metric.name for metric in (*COUNTED, *GAUGES)}
    uncounted = {"fdstore_model_retries_total", "fdstore_model_failures_total"}  # no model failed
    assert shown <= expected
    assert expected - shown <= uncounted


def test_every_line_of_a_json_log_is_an_object_without_content(observed: Observed) -> None:
    lines = [json.loads(line) for line in observed.logs.splitlines()]

    tools = [line for line in lines if line.get("tool") == "lines"]
    assert {line["process"] for line in tools} == {f"{observed.root}.1", f"{observed.root}.2"}
    assert all(line["outcome"] == "ok" and line["duration_s"] >= 0 and line["attempt"] == 1 for line in tools)
    ends = [line for line in lines if line.get("state") == "exited"]
    assert {line["program"] for line in ends} == {"root", "reader"}
    assert SECRET not in observed.logs
