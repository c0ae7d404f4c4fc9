"""Spans of requests, with OpenTelemetry's SDK where it is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mycelia_serving.frontend.tracing import submitter

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SCRIPT = f"""
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

from mycelia_serving.errors import Code, ServingError
from mycelia_serving.frontend.tracing import submitter
from mycelia_serving.request import Reply, Request

seen = []

class Dispatcher:
    def submit(self, request, done):
        seen.append(request.traceparent)
        if request.method == "hang":
            return self
        done(Reply([{{}}, ServingError(Code.INVALID_INPUTS, "bad")][: len(request.instances)], 3))

    def cancel(self):
        seen.append("cancelled")

submit = submitter(Dispatcher())
submit(Request("s", "m", [{{}}, {{}}], traceparent="00-{TRACE}-{PARENT}-01"), seen.append)
submit(Request("s", "hang", [{{}}]), None).cancel()
first, second = exporter.get_finished_spans()
assert first.name == "s/m" and first.attributes["serving.failed"] == 1
assert first.attributes["serving.version"] == 3
assert format(first.context.trace_id, "032x") == "{TRACE}"
assert format(first.parent.span_id, "016x") == "{PARENT}"
assert seen[0] == "00-{TRACE}-%016x-01" % first.context.span_id
assert second.attributes["serving.cancelled"] and seen[-1] == "cancelled"
"""


def test_without_a_provider_nothing_is_in_between(echo):
    assert submitter(echo) == echo.submit


def test_a_request_is_a_span_below_its_caller_and_above_its_worker():
    pytest.importorskip("opentelemetry.sdk")
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=60)
