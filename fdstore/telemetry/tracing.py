"""Spans for OpenTelemetry, by its conventions for generative AI.

    invoke_agent PROGRAM        one attempt at a process; `pipeline` for one of commands
      chat MODEL                one model call
      execute_tool NAME         one tool call
        fdstore OPERATION       one operation on the store, however many commands it has
        invoke_agent PROGRAM    an attempt at a child that the tool started, on any worker
        events                  fdstore.question.asked, fdstore.question.answered: of a person

A process and all its descendants share one trace, on any worker: the record of a process has the
`traceparent` of what created it, and that of its last attempt. A later attempt is a new span of that
trace, linked to the last one. The span of a killed attempt is never sent, but its parts name it.

Operations outside any span make none, so that sweeps, heartbeats and the queue do not. A span never
holds content, arguments or messages of errors, which may quote both: results are named by their URIs.

Off (`tracer` is None) until `turn_on`: by a worker, or by `connect` if the program has set a tracer
provider.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import Link, Span, SpanKind, Tracer

Attributes = Mapping[str, str | int | float | bool | tuple[str, ...] | None]

OPERATION = "db.operation.name"
"""The attribute of a span of the store that says whether it read or wrote."""

tracer: Tracer | None = None
"""Creates spans; None: nothing is traced."""


def turn_on() -> None:
    """Trace from now on, with the global tracer provider."""
    global tracer
    from opentelemetry import trace

    tracer = trace.get_tracer("fdstore")


def turn_off() -> None:
    """Trace no more."""
    global tracer
    tracer = None


def turn_on_if_provided() -> None:
    """Trace from now on if the program has set a tracer provider. Does not import OpenTelemetry."""
    if tracer is not None:
        return
    trace = sys.modules.get("opentelemetry.trace")
    if trace is not None and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        turn_on()


def traceparent() -> str:
    """Return the current span in the form of W3C's header; "" if there is none.

    >>> traceparent()
    ''
    """
    if tracer is None:
        return ""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


@contextmanager
def span(
    name: str,
    attributes: Attributes,
    *,
    kind: SpanKind | None = None,
    parent: str = "",
    linked: str = "",
) -> Iterator[Span | None]:
    """Run the block in a span, and yield it; None if nothing is traced. `parent` and `linked` are
    traceparents; without a parent it is the current span. An exception sets its `error.type`."""
    if tracer is None:
        yield None
        return
    from opentelemetry.trace import SpanKind

    links = _links(linked)
    with tracer.start_as_current_span(
        name,
        _context(parent) if parent else None,
        kind or SpanKind.INTERNAL,
        _present(attributes),
        links,
        record_exception=False,
        set_status_on_exception=False,
    ) as opened:
        try:
            yield opened
        except BaseException as error:
            _mark_failed(opened, error)
            raise


def add(opened: Span | None, **attributes: str | int | float | bool | tuple[str, ...] | None) -> None:
    """Add attributes to a span; `_` in a name stands for a dot, `__` for `_`. None adds nothing."""
    if opened is not None:
        opened.set_attributes(
            {
                name.replace("__", "\0").replace("_", ".").replace("\0", "_"): value
                for name, value in attributes.items()
                if value is not None
            }
        )


def question(number: int, *, how: str = "", door: str = "", waited_s: float = 0.0) -> None:
    """Add to the current span that a question waits for a person, or `how` it ended: "answer", "timeout" or
    "withdrawn", after so many seconds. Neither its text nor who answered is told."""
    if tracer is None:
        return
    from opentelemetry import trace

    told: Attributes = {"fdstore.question": number}
    if how:
        told = {**told, "fdstore.answer": how, "fdstore.door": door or None, "fdstore.waited_s": waited_s}
    name = "fdstore.question.answered" if how else "fdstore.question.asked"
    trace.get_current_span().add_event(name, _present(told))


def invoke_agent(
    process: str, program: str, *, attempt: int, losses: int, is_pipeline: bool, traceparent: str, traced: str
) -> AbstractContextManager[Span | None]:
    """Return the span of one attempt at a process. `traceparent` is that of its creator, `traced` that
    of its last attempt, "" for none."""
    attributes: Attributes = {
        "gen_ai.operation.name": None if is_pipeline else "invoke_agent",
        "gen_ai.agent.name": None if is_pipeline else program,
        "gen_ai.agent.id": process,
        "gen_ai.conversation.id": process.partition(".")[0],
        "fdstore.process": process,
        "fdstore.attempt": attempt,
        "fdstore.losses": losses,
    }
    # the title of a pipeline quotes its commands
    name = "pipeline" if is_pipeline else f"invoke_agent {program}"
    return span(name, attributes, parent=traceparent or traced, linked=traced)


def chat(model: str) -> AbstractContextManager[Span | None]:
    """Return the span of one model call."""
    from opentelemetry.trace import SpanKind

    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": model,
    }
    return span(f"chat {model}", attributes, kind=SpanKind.CLIENT)


def execute_tool(name: str, call_id: str | None, *, is_function: bool) -> AbstractContextManager[Span | None]:
    """Return the span of one tool call."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function" if is_function else "datastore",
        "gen_ai.tool.call.id": call_id,
    }
    return span(f"execute_tool {name}", attributes)


def is_in_span() -> bool:
    """Return whether there is a span around the caller. For use while `tracer` is set."""
    from opentelemetry.trace import get_current_span

    return get_current_span().get_span_context().is_valid


@contextmanager
def operation(generator: object) -> Iterator[Callable[[], None] | None]:
    """Run the block, which runs an operation on the store, in a span of its own, if there is a span
    around it. What the operation creates belongs to the span around it.

    Yields what to call if the operation writes, for else its span says that it reads; None without a span."""
    if tracer is None or not is_in_span():
        yield None
        return
    from opentelemetry.trace import SpanKind

    name = getattr(generator, "__qualname__", "operation")
    attributes = {"db.system.name": "redis", OPERATION: "read"}
    opened = tracer.start_span(f"fdstore {name}", kind=SpanKind.CLIENT, attributes=attributes)
    try:
        yield partial(opened.set_attribute, OPERATION, "write")
    except BaseException as error:
        _mark_failed(opened, error)
        raise
    finally:
        opened.end()


def untraced() -> Callable[[], None]:
    """Suppress other packages' spans in this thread, such as those of the client that polls the queue.
    Return what ends that."""
    if tracer is None:
        return lambda: None
    from opentelemetry import context

    token = context.attach(context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True))
    return lambda: context.detach(token)


def forget_context() -> None:
    """Forget the current span, and that spans are suppressed: in a fork."""
    if tracer is not None:
        from opentelemetry import context

        context.attach(context.Context())


def type_of(error: BaseException) -> str:
    """Return the name of an error in spans and logs. An operation is closed when its caller is cancelled."""
    if isinstance(error, GeneratorExit):
        return "CancelledError"
    return getattr(error, "type", None) or type(error).__name__


def _mark_failed(opened: Span, error: BaseException) -> None:
    from opentelemetry.trace import Status, StatusCode

    opened.set_attribute("error.type", type_of(error))
    opened.set_status(Status(StatusCode.ERROR))


def _present(attributes: Attributes) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _context(parent: str) -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": parent})


def _links(traced: str) -> list[Link]:
    from opentelemetry.trace import Link, get_current_span

    if not traced:
        return []
    found = get_current_span(_context(traced)).get_span_context()
    return [Link(found)] if found.is_valid else []
