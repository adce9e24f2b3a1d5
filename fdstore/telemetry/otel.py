"""Configure OpenTelemetry's SDK from its standard environment variables, in a process of a worker.

`OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER` name exporters (`otlp`, `console`, `none`, or one that
is installed); `OTEL_EXPORTER_OTLP_ENDPOINT` alone means `otlp`. The SDK itself reads the rest: service
name, resource, sampler, batches, headers. A program that uses fdstore as a library configures the SDK
itself: a provider that is set already is used as it is, and no other is made.

The metrics are those that this process counts (`counts`). A process of a worker is one service instance.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import msgspec

from fdstore.setup.settings import OtelSettings
from fdstore.telemetry import counts, tracing
from fdstore.telemetry.metric_table import COUNTED, SAVED_CHARS, Metric

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

log = logging.getLogger("fdstore.telemetry")

PROCESSES = 64
"""Processes that may count at the same time if they are not counted for Prometheus too: those of a pool."""

FLUSH_S = 3.0
"""The time that a process that exits may take to send what is left."""


def configure(settings: OtelSettings) -> Callable[[], None]:
    """Set up what the environment asks for. Return a function that sends what is left, within
    `FLUSH_S`."""
    tracing.turn_on_if_provided()
    if tracing.tracer is not None:
        settings = msgspec.structs.replace(settings, traces="")
    if (provider := provided_meters()) is not None:
        observe_once(provider)
        settings = msgspec.structs.replace(settings, metrics="")
    if not (settings.traces or settings.metrics):
        return lambda: None
    try:
        from opentelemetry import metrics, trace
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.warning("nothing is sent by OpenTelemetry, although its environment is set: %s", error)
        return lambda: None
    flushes: list[Callable[[], object]] = []
    if make_exporter := _exporter("traces", settings.traces, settings.protocol):
        tracers = TracerProvider()
        tracers.add_span_processor(BatchSpanProcessor(make_exporter()))
        trace.set_tracer_provider(tracers)
        tracing.turn_on()
        flushes.append(tracers.shutdown)
    if make_exporter := _exporter("metrics", settings.metrics, settings.protocol):
        meters = MeterProvider([PeriodicExportingMetricReader(make_exporter())])
        metrics.set_meter_provider(meters)
        observe_once(meters)
        flushes.append(meters.shutdown)

    def flush() -> None:
        # an exporter whose server is gone would retry for longer than this process may take
        threads = [threading.Thread(target=each, daemon=True) for each in flushes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(FLUSH_S)

    return flush


def provided_meters() -> Any | None:
    """Return the global meter provider; None if none was set. Does not import OpenTelemetry."""
    metrics = sys.modules.get("opentelemetry.metrics")
    if metrics is None:
        return None
    provider = metrics.get_meter_provider()
    return None if isinstance(provider, metrics._internal._ProxyMeterProvider) else provider


_observed: WeakSet[Any] = WeakSet()


def observe_once(provider: Any) -> None:
    """Count from now on, and offer the counts of this process to a meter provider that does not have them."""
    if provider not in _observed:
        _observed.add(provider)
        counts.turn_on(PROCESSES)
        observe(provider.get_meter("fdstore"))


def observe(meter: Any) -> None:
    """Offer the counts of this process as instruments of `meter`."""
    from opentelemetry.metrics import Observation

    def of(metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(_: CallbackOptions) -> Iterable[Observation]:
            return [
                Observation(numbers[0], dict(zip(metric.labels, key[1:], strict=True)))
                for key, numbers in _own().items()
                if key[0] == metric.name
            ]

        return read

    def saved(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(saved_chars(_own()))]

    instruments = [(meter.create_observable_counter, each, of(each)) for each in COUNTED]
    instruments.append((meter.create_observable_up_down_counter, SAVED_CHARS, saved))
    for create, metric, observed in instruments:
        if metric.otel:
            name, unit = metric.otel
            create(name, [observed], unit, metric.help)


def saved_chars(counted: dict[counts.Key, list[float]]) -> float:
    """Return the characters that were kept out of contexts, less those that were read back."""
    kept, read = [counted.get((f"fdstore_{name}_chars_total",), [0.0])[0] for name in ("kept_out", "read")]
    return kept - read


def _own() -> dict[counts.Key, list[float]]:
    return counts.turn_on().read_own()


def _exporter(kind: str, name: str, protocol: str) -> Callable[[], Any] | None:
    """Return the class of an exporter; None for none."""
    if not name:
        return None
    installed = f"otlp_proto_{protocol}" if name == "otlp" else name
    for found in entry_points(group=f"opentelemetry_{kind}_exporter", name=installed):
        exporter: Callable[[], Any] = found.load()
        return exporter
    log.warning("exporter %s for %s is not installed; nothing is sent", installed, kind)
    return None
