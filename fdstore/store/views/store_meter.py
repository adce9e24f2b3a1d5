"""The metrics of a program that has set a meter provider of OpenTelemetry: the counts of its process, and
what they cannot tell, the gauges of each store that it is connected to.

The gauges are read when the provider collects, on the provider's thread and over a connection that is closed
again, so that no call of the program waits for them. A store counts as connected as long as its runner is
referred to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from fdstore.errors import FDStoreError
from fdstore.setup.settings import read as read_settings
from fdstore.store.views.gauges import QueueGauges, StoreGauges, read_gauges, read_queue
from fdstore.telemetry.metric_table import gauges_of
from fdstore.wire.operation import Operation

T = TypeVar("T")

PATIENCE_S = 2.0
"""The time that a collection waits for a store that does not answer."""

_connected: WeakKeyDictionary[object, tuple[str, str]] = WeakKeyDictionary()
"""URL and prefix of each runner."""

_observed: WeakSet[Any] = WeakSet()
"""The meter providers that have the gauges."""


def observe_if_provided(runner: object, url: str, prefix: str) -> None:
    """Offer the metrics of this process, and of the store that `runner` is connected to, if the program has
    set a meter provider. Does not import OpenTelemetry."""
    if "opentelemetry.metrics" not in sys.modules:
        return
    from fdstore.telemetry import otel

    provider = otel.provided_meters()
    if provider is None:
        return
    _connected[runner] = url, prefix
    otel.observe_once(provider)
    if provider not in _observed:
        _observed.add(provider)
        _observe_stores(provider.get_meter("fdstore"))


def _observe_stores(meter: Any) -> None:
    from opentelemetry.metrics import Observation

    def each(read: Callable[[str, str], object], field: str) -> Callable[[Any], list[Any]]:
        def observations(_: Any) -> list[Any]:
            found = {}
            for url, prefix in set(_connected.values()):
                with suppress(FDStoreError):  # what does not answer has no value
                    found[prefix] = getattr(read(url, prefix), field)
            return [
                Observation(value, {"prefix": prefix}) for prefix, value in found.items() if value is not None
            ]

        return observations

    for kind, read in ((StoreGauges, _read_store), (QueueGauges, _read_queue)):
        for field, gauge in gauges_of(kind).items():
            if gauge.otel:
                name, unit = gauge.otel
                meter.create_observable_gauge(name, [each(read, field)], unit, gauge.help)


def _read_store(url: str, prefix: str) -> StoreGauges:
    return _run(url, read_gauges(prefix))


def _read_queue(url: str, prefix: str) -> QueueGauges:
    return QueueGauges(_run(read_settings().broker_url or url, read_queue(prefix)).length)


def _run(url: str, operation: Operation[T]) -> T:
    """Run an operation over a connection of its own."""
    from fdstore.wire._sync.cluster import make_runner

    runner = make_runner(url, PATIENCE_S)
    try:
        return runner.run(operation)
    finally:
        runner.close()
