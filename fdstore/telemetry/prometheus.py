"""Counts and gauges in Prometheus' text format, by `prometheus_client`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder

from fdstore.telemetry.counts import Key
from fdstore.telemetry.metric_table import COUNTED, Metric, gauges_of

States = Iterable[msgspec.Struct | None]
"""The Structs that declare gauges, with their values. Those of one that is None are absent."""


def render(counted: Mapping[Key, list[float]], states: States, accept: str = "") -> tuple[bytes, str]:
    """Return the page for a request with this `Accept` header, and its content type."""
    encoder, content_type = choose_encoder(accept)
    return encoder(_Page(counted, states)), content_type


class _Page:
    """The metrics of one request, as `prometheus_client` collects them."""

    def __init__(self, counted: Mapping[Key, list[float]], states: States) -> None:
        self._counted = counted
        self._states = states

    def collect(self) -> Iterator[Any]:
        for metric in COUNTED:
            series = {key[1:]: numbers for key, numbers in self._counted.items() if key[0] == metric.name}
            if not metric.labels:  # present from the start, for rates
                series = series or {(): [0.0] * metric.size}
            yield _histogram(metric, series) if metric.buckets else _counter(metric, series)
        for state in filter(None, self._states):
            for field, gauge in gauges_of(type(state)).items():
                value = getattr(state, field)
                if value is not None:
                    yield _gauge(gauge, value)


def _gauge(gauge: Metric, value: Any) -> Any:
    family = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels)
    labels, shown = ([value], 1) if gauge.labels else ([], value)
    family.add_metric(labels, shown)
    return family


def _counter(metric: Metric, series: Mapping[Key, Sequence[float]]) -> Any:
    family = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, [value] in sorted(series.items()):
        family.add_metric(labels, value)
    return family


def _histogram(metric: Metric, series: Mapping[Key, Sequence[float]]) -> Any:
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    bounds = [*map(str, metric.buckets), "+Inf"]
    for labels, numbers in sorted(series.items()):
        buckets = list(zip(bounds, accumulate(numbers[:-1]), strict=True))
        family.add_metric(labels, buckets, sum_value=numbers[-1])
    return family
