"""A span of OpenTelemetry for each request, if this process traces.

It does when a tracer provider was set before the port is opened, for example by
`opentelemetry-instrument mycelia-serving start ...`. A caller's `traceparent` is the parent of the span;
workers get the span's own. Without a provider nothing is imported, and what the caller sent is passed on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from mycelia_serving.request import Call, Dispatcher, Reply, Request

Submit = Callable[[Request, Callable[[Reply], None]], Call]


def submitter(dispatcher: Dispatcher) -> Submit:
    """`dispatcher.submit`, with a span around each request if this process traces."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or type(trace.get_tracer_provider()).__name__ == "ProxyTracerProvider":
        return dispatcher.submit
    return _Traced(dispatcher, trace).submit


class _Traced:
    def __init__(self, dispatcher: Dispatcher, trace) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._dispatcher = dispatcher
        self._trace = trace
        self._tracer = trace.get_tracer("mycelia_serving")
        self._headers = TraceContextTextMapPropagator()

    def submit(self, request: Request, done: Callable[[Reply], None]) -> Call:
        trace = self._trace
        headers = {} if request.traceparent is None else {"traceparent": request.traceparent}
        span = self._tracer.start_span(
            f"{request.servable}/{request.method}",
            context=self._headers.extract(headers),
            kind=trace.SpanKind.SERVER,
            attributes={
                "serving.servable": request.servable,
                "serving.method": request.method,
                "serving.protocol": request.protocol,
                "serving.instances": len(request.instances),
            },
        )
        carrier: dict[str, str] = {}
        self._headers.inject(carrier, trace.set_span_in_context(span))
        request.traceparent = carrier.get("traceparent", request.traceparent)

        def answer(reply: Reply) -> None:
            errors = [reply.error] if reply.error else [r for r in reply.results if type(r) is not dict]
            span.set_attribute("serving.version", reply.version)
            span.set_attribute("serving.failed", len(errors))
            if errors and (reply.error or len(errors) == len(reply.results)):
                span.set_status(trace.StatusCode.ERROR, errors[0].message)
            span.end()
            done(reply)

        return _TracedCall(self._dispatcher.submit(request, answer), span)


class _TracedCall:
    def __init__(self, call: Call, span) -> None:
        self._call, self._span = call, span

    def cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()
        if self._span.is_recording():
            self._span.set_attribute("serving.cancelled", True)
            self._span.end()
