"""The view of operators on running agents: counts for Prometheus and OpenTelemetry, spans for
OpenTelemetry.

    metric_table    every metric that is counted, a row each, and what a row says of a metric or gauge
    counts          counters and histograms of the processes of a worker, in memory that they share
    prometheus      those counts, and the gauges of a state, in Prometheus' text format
    otel            those counts as OpenTelemetry metrics; configures its SDK from the environment
    tracing         spans: agents, model calls, tool calls, operations on the store
    calls           what one model call and one tool call count, log and trace

Both are off by default: then each place that counts or traces does one comparison with None. Neither
ever holds content: texts are named by their ids.
"""
