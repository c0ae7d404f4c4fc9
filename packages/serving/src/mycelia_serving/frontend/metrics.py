"""What the protocols count, and the page `/metrics` for Prometheus.

Requests and instances are counted here, about 2 us a request. Queues, runs and batches are measured by the
dispatcher, if it has `measures()`: (servable, version, method, MethodTimes, queued instances) of each method.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator

from mycelia_serving.errors import Code, ServingError
from mycelia_serving.measures import Histogram
from mycelia_serving.request import Dispatcher, Reply

UNKNOWN = "unknown"  # label of what is not served: callers must not be able to make up new labels


class _Series:
    """One protocol's requests to one method of one version."""

    __slots__ = ("failed", "failed_ns", "failed_requests", "last", "outcomes", "seconds", "succeeded")

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}
        self.seconds = Histogram()
        self.succeeded = 0  # instances
        self.failed = 0
        self.failed_requests = 0
        self.failed_ns = 0
        self.last = 0.0  # time.time() of the last request


class Metrics:
    """Counters of one dispatcher. `log` gets a line per request as a dict, if it is set."""

    _known: weakref.WeakKeyDictionary[Dispatcher, Metrics] = weakref.WeakKeyDictionary()
    _making = threading.Lock()

    @classmethod
    def of(cls, dispatcher: Dispatcher) -> Metrics:
        """The counters that all protocols of a dispatcher share."""
        with cls._making:
            found = cls._known.get(dispatcher)
            if found is None:
                found = cls._known[dispatcher] = cls(dispatcher)
            return found

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = weakref.ref(dispatcher)
        self._lock = threading.Lock()
        self._series: dict[tuple[str, str, int, str], _Series] = {}
        self._bytes: dict[str, list[int]] = {}  # protocol -> received, sent
        self.log: Callable[[dict], None] | None = None

    def count(
        self,
        protocol: str,
        servable: str,
        method: str,
        reply: Reply,
        start: float,
        received: int,
        sent: int,
    ) -> None:
        """A request that was answered; `start` is its `time.perf_counter()`."""
        seconds = time.perf_counter() - start
        error = reply.error
        if error is None:
            results = reply.results
            total = len(results)
            failed = 0
            for result in results:
                if type(result) is ServingError:
                    failed += 1
                    error = error or result
            if not failed:
                outcome = "success"
            else:
                outcome = "partial" if failed < total else error.code.name.lower()
        else:
            total = failed = 1
            outcome = error.code.name.lower()
        version = reply.version
        if not version or (error is not None and error.code is Code.NOT_FOUND):
            servable = method = UNKNOWN
        key = (servable, method, version, protocol)
        with self._lock:
            series = self._series.get(key)
            if series is None:
                series = self._series[key] = _Series()
            series.outcomes[outcome] = series.outcomes.get(outcome, 0) + 1
            series.seconds.observe(seconds)
            series.succeeded += total - failed
            if failed:
                series.failed += failed
                series.failed_requests += 1
                series.failed_ns += int(seconds * 1e9)
            series.last = time.time()
            flow = self._bytes.get(protocol)
            if flow is None:
                flow = self._bytes[protocol] = [0, 0]
            flow[0] += received
            flow[1] += sent
        if self.log is not None:
            self.log(
                {
                    "protocol": protocol,
                    "servable": servable,
                    "method": method,
                    "version": version,
                    "outcome": outcome,
                    "instances": total,
                    "failed": failed,
                    "ms": round(seconds * 1e3, 3),
                    "received": received,
                    "sent": sent,
                }
            )

    def measures(self) -> Iterator[tuple]:
        """(servable, version, method, MethodTimes, queued instances) of the dispatcher, if it measures."""
        measure = getattr(self._dispatcher(), "measures", None)
        return iter(()) if measure is None else iter(measure())

    def statistics(self, servable: str, method: str, version: int) -> dict[str, int]:
        """Sums over the protocols for KServe's statistics: counts, nanoseconds, milliseconds since 1970."""
        found = dict.fromkeys(
            (
                "succeeded",
                "success_count",
                "success_ns",
                "fail_count",
                "fail_ns",
                "last",
                "queue_count",
                "queue_ns",
                "run_count",
                "run_ns",
            ),
            0,
        )
        with self._lock:
            for (one, its_method, its_version, _), series in self._series.items():
                if (one, its_method, its_version) != (servable, method, version):
                    continue
                found["succeeded"] += series.succeeded
                found["fail_count"] += series.failed_requests
                found["fail_ns"] += series.failed_ns
                found["success_count"] += series.seconds.count - series.failed_requests
                found["success_ns"] += int(series.seconds.total * 1e9) - series.failed_ns
                found["last"] = max(found["last"], int(series.last * 1e3))
        for one, its_version, its_method, times, _ in self.measures():
            if (one, its_method, its_version) == (servable, method, version):
                found["queue_count"] = times.queue.count
                found["queue_ns"] = int(times.queue.total * 1e9)
                found["run_count"] = times.run.count
                found["run_ns"] = int(times.run.total * 1e9)
        return found

    # ---- Prometheus ----------------------------------------------------------------------------------------

    def page(self) -> bytes:
        """The text that Prometheus reads (format 0.0.4)."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator:
        """Families of samples; what `prometheus_client.CollectorRegistry.register` asks for."""
        yield from self._request_families()
        yield from self._method_families()
        yield from self._servable_families()

    def _request_families(self) -> Iterator:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        labels = ["servable", "method", "version"]
        requests = CounterMetricFamily(
            "mycelia_serving_requests", "Requests answered.", labels=[*labels, "protocol", "outcome"]
        )
        instances = CounterMetricFamily(
            "mycelia_serving_instances", "Instances answered.", labels=[*labels, "protocol", "outcome"]
        )
        seconds = HistogramMetricFamily(
            "mycelia_serving_request_seconds",
            "Time from the whole request to the whole reply.",
            labels=[*labels, "protocol"],
        )
        received = CounterMetricFamily(
            "mycelia_serving_received_bytes", "Bytes of requests.", labels=["protocol"]
        )
        sent = CounterMetricFamily("mycelia_serving_sent_bytes", "Bytes of replies.", labels=["protocol"])
        with self._lock:
            for (servable, method, version, protocol), series in self._series.items():
                names = [servable, method, str(version)]
                for outcome, number in series.outcomes.items():
                    requests.add_metric([*names, protocol, outcome], number)
                instances.add_metric([*names, protocol, "success"], series.succeeded)
                instances.add_metric([*names, protocol, "failed"], series.failed)
                seconds.add_metric([*names, protocol], series.seconds.buckets(), series.seconds.total)
            for protocol, (came, went) in self._bytes.items():
                received.add_metric([protocol], came)
                sent.add_metric([protocol], went)
        yield from (requests, instances, seconds, received, sent)

    def _method_families(self) -> Iterator:
        from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily

        labels = ["servable", "method", "version"]
        queue = HistogramMetricFamily(
            "mycelia_serving_queue_seconds", "Time until a worker got the request.", labels=labels
        )
        run = HistogramMetricFamily("mycelia_serving_run_seconds", "Time at the worker.", labels=labels)
        sizes = HistogramMetricFamily(
            "mycelia_serving_batch_instances", "Instances given to a worker at once.", labels=labels
        )
        queued = GaugeMetricFamily(
            "mycelia_serving_queued_instances", "Instances that wait for a worker.", labels=labels
        )
        for servable, version, method, times, waiting in self.measures():
            names = [servable, method, str(version)]
            for family, histogram in ((queue, times.queue), (run, times.run), (sizes, times.sizes)):
                family.add_metric(names, histogram.buckets(), histogram.total)
            queued.add_metric(names, waiting)
        yield from (queue, run, sizes, queued)

    def _servable_families(self) -> Iterator:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        labels = ["servable", "version"]
        states = GaugeMetricFamily(
            "mycelia_serving_servable_state", "1 for the state it is in.", labels=[*labels, "state"]
        )
        workers = GaugeMetricFamily("mycelia_serving_workers", "Workers by state.", labels=[*labels, "state"])
        outstanding = GaugeMetricFamily(
            "mycelia_serving_outstanding_instances", "Instances that workers have.", labels=labels
        )
        restarts = CounterMetricFamily(
            "mycelia_serving_worker_restarts", "Workers started again after they were lost.", labels=labels
        )
        load = GaugeMetricFamily(
            "mycelia_serving_model_load_seconds", "Longest time a worker took to load.", labels=labels
        )
        dispatcher = self._dispatcher()
        for info in dispatcher.describe() if dispatcher is not None else ():
            names = [info.name, str(info.version)]
            states.add_metric([*names, info.state], 1)
            by_state: dict[str, int] = {}
            for worker in info.workers:
                by_state[worker["state"]] = by_state.get(worker["state"], 0) + 1
            for state, number in by_state.items():
                workers.add_metric([*names, state], number)
            outstanding.add_metric(names, sum(w.get("outstanding", 0) for w in info.workers))
            restarts.add_metric(names, sum(w.get("restarts", 0) for w in info.workers))
            load.add_metric(names, max((w.get("load_seconds", 0.0) for w in info.workers), default=0.0))
        yield from (states, workers, outstanding, restarts, load)
