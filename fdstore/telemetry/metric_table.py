"""Every metric that a worker counts, by the conventions of Prometheus."""

from __future__ import annotations

from typing import Literal

import msgspec

CALL_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds: from a page read to a command that takes minutes."""

ANSWER_BUCKETS_S = (0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0)


class Metric(msgspec.Struct, frozen=True):
    """A counter, or a histogram with these upper bounds."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def kind(self) -> Literal["counter", "histogram"]:
        return "histogram" if self.buckets else "counter"

    @property
    def size(self) -> int:
        """Return how many numbers it has: those in each bucket, those above, and the sum; or the count."""
        return len(self.buckets) + 2 if self.buckets else 1


COUNTED = (
    Metric("fdstore_model_turns_total", "Answers of models.", ("model",)),
    Metric(
        "fdstore_model_tokens_total",
        "Tokens, as the provider counts them. Type: input (all that was sent), cache_read and "
        "cache_write (the parts of it that were read from its prompt cache, or written to it), output.",
        ("model", "type"),
    ),
    Metric(
        "fdstore_model_call_duration_seconds",
        "Time until an answer was complete, with retries and their pauses.",
        ("model",),
        ANSWER_BUCKETS_S,
    ),
    Metric("fdstore_model_retries_total", "Requests to models that failed and were repeated.", ("model",)),
    Metric("fdstore_model_failures_total", "Model calls that were given up.", ("model",)),
    Metric(
        "fdstore_tool_calls_total",
        "Tool calls. Outcome: ok, error (its result has is_error), started (it waits for processes, and "
        "counts again when its agent goes on), failed (the store failed).",
        ("tool", "outcome"),
    ),
    Metric(
        "fdstore_tool_duration_seconds",
        "Time of tool calls, without waiting for the processes that they start.",
        ("tool",),
        CALL_BUCKETS_S,
    ),
    Metric("fdstore_result_chars_total", "Characters of results of tools.", ("offloaded",)),
    Metric(
        "fdstore_kept_out_chars_total",
        "Characters of texts that were stored instead of being sent to a model, less what it saw instead.",
    ),
    Metric(
        "fdstore_read_chars_total", "Characters of stored texts that were shown to models by fdstore's tools."
    ),
    Metric(
        "fdstore_process_attempts_total",
        "Attempts at processes. Ending: ended, waiting (until children end), given_back, lost, failed.",
        ("ending",),
    ),
    Metric("fdstore_process_ends_total", "Processes that ended here, by their state.", ("state",)),
    Metric("fdstore_process_losses_total", "Processes whose worker was lost, as this worker found out."),
    Metric("fdstore_process_takeovers_total", "Processes that this worker continued after another was lost."),
    Metric(
        "fdstore_worker_lost_calls_total",
        "Calls that did not end within a minute after they were lost, so that their process was replaced.",
    ),
    Metric("fdstore_worker_starts_total", "Starts of the process that works; more than 1: it died before."),
)

METRICS = {metric.name: metric for metric in COUNTED}


class Gauge(msgspec.Struct, frozen=True):
    """A value read when it is asked for. Absent if it is not known."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    kind: Literal["gauge"] = "gauge"


GAUGES = (
    Gauge("fdstore_build_info", "1, with the version of this worker.", ("version",)),
    Gauge("fdstore_worker_ready", "1 while this worker accepts work, as /readyz."),
    Gauge("fdstore_worker_slots", "Agents that this worker can run at the same time."),
    Gauge("fdstore_worker_busy_slots", "Slots of this worker that are in use."),
    Gauge(
        "fdstore_worker_lost_slots",
        "Slots of this worker that are held by calls which do not end although their process is another's by "
        "now, or was cancelled.",
    ),
    Gauge(
        "fdstore_saved_chars",
        "Characters kept out of contexts less those read back, since the start.",
    ),
    Gauge("fdstore_store_up", "1 if the store answered. If 0, all that follows is absent."),
    Gauge("fdstore_store_used_memory_bytes", "Memory that Redis uses, of all primaries."),
    Gauge("fdstore_store_max_memory_bytes", "maxmemory of Redis, of all primaries; 0: no limit."),
    Gauge("fdstore_store_text_bytes", "Stored texts and bytes of all trees (UTF-8), as of the last sweep."),
    Gauge("fdstore_store_trees", "Trees, as of the last sweep."),
    Gauge("fdstore_store_live_processes", "Processes that have not ended, as of the last sweep."),
    Gauge("fdstore_store_open_streams", "Streams that are being written, as of the last sweep."),
    Gauge("fdstore_store_workers", "Live workers."),
    Gauge("fdstore_sweep_lag_seconds", "Time since the last sweep by any worker ended."),
    Gauge("fdstore_queue_length", "Wake-ups that no worker has received."),
    Gauge("fdstore_queue_oldest_age_seconds", "How long the oldest process in the queue has been ready."),
)
