"""Pipelines of stages, requests that share runs, priorities, deadlines, functions that hang, the end."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from mycelia_serving.errors import Code, ServingError

PIPELINE = """
model = register.declare_model("add_sub.mindir", "MindIR")

def cast(x, y):
    if x.shape != (3,):
        raise ValueError("three numbers, please")
    return x.astype(np.float32), y.astype(np.float32)

def best(total, difference):
    return int(np.argmax(total)), "up" if difference.sum() > 0 else "down"

@register.register_method(["place", "way", "total"])
def predict(x, y):
    x, y = register.add_stage(cast, x, y, outputs_count=2)
    total, difference = register.add_stage(model, x, y, outputs_count=2)
    place, way = register.add_stage(best, total, difference, outputs_count=2)
    return place, way, total

@register.register_method(["total", "difference"])
def plain(x, y):
    return register.add_stage(model, x, y, outputs_count=2)
"""

GATE = """
gate = threading.Event()
entered = threading.Semaphore(0)
seen = []

def f(x):
    seen.append(x)
    entered.release()
    if x == "wait":
        assert gate.wait(60)
    return x

@register.register_method("y")
def predict(x):
    return register.add_stage(f, x, outputs_count=1)
"""


def module(engine):
    """The names of the engine's config."""
    return engine._declaration.module


def test_a_pipeline_takes_each_instance_through_all_stages(serve, infer):
    engine = serve(PIPELINE, "add_sub")
    rows = np.arange(30).reshape(5, 2, 3)[:, :, ::-1]
    instances = [{"x": x, "y": -2 * y} for x, y in rows]
    instances.insert(2, {"x": np.zeros(4), "y": np.zeros(4)})
    results = infer(engine, "predict", *instances)
    error = results.pop(2)
    assert error.message.endswith(
        "'cast' of method 'predict', stage 1, failed: ValueError: three numbers, please"
    )
    for (x, y), result in zip(rows, results):
        total = (x - 2 * y).astype(np.float32)
        assert result["place"] == np.argmax(total) and result["way"] == "up"
        np.testing.assert_array_equal(result["total"], total)


def test_infos_tell_what_goes_into_a_model_and_nothing_of_functions(serve):
    engine = serve(PIPELINE, "add_sub")
    predict, plain = engine.infos
    assert [i.dtype for i in predict.inputs] == [None, None]
    assert [(o.name, o.dtype) for o in predict.outputs] == [
        ("place", None),
        ("way", None),
        ("total", "float32"),
    ]
    assert [i.shape for i in plain.inputs] == [(3,), (3,)]


def test_many_threads_get_their_own_answers(serve, infer):
    engine = serve(PIPELINE, "add_sub")
    failures = []

    def client(number: int) -> None:
        rng = np.random.default_rng(number)
        for k in range(40):
            rows = rng.integers(0, 50, (1 + k % 4, 2, 3))
            method = ("predict", "plain")[k % 2]
            given = rows if method == "predict" else rows.astype(np.float32)
            for (x, y), result in zip(rows, infer(engine, method, *({"x": x, "y": y} for x, y in given))):
                if not np.array_equal(result["total"], x + y):
                    failures.append((number, k))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and engine.pending() == 0


def test_requests_share_a_run_of_the_model(serve, Answer):
    """While one run is under way, others wait and then go together."""
    config = (
        GATE
        + """
sizes = []

def count(instances):
    sizes.append(len(instances))
    return [x for x, in instances]

@register.register_method("y")
def counted(x):
    x = register.add_stage(f, x, outputs_count=1)
    return register.add_stage(count, x, outputs_count=1, batch_size=4)
"""
    )
    engine = serve(config, threads=1)
    answers = [Answer() for _ in range(9)]
    engine.submit("counted", [{"x": "wait"}], answers[0])
    assert module(engine).entered.acquire(timeout=60)
    for k, answer in enumerate(answers[1:]):
        engine.submit("counted", [{"x": f"{k}"}], answer)
    module(engine).gate.set()
    assert [answer.wait()[0]["y"] for answer in answers] == ["wait", *"01234567"]
    assert max(module(engine).sizes) == 4 and sum(module(engine).sizes) == 9


def test_a_delay_waits_for_a_full_batch(serve, Answer):
    config = """
model = register.declare_model("scaled.mindir", "MindIR", without_batch_dim_inputs=1,
                               max_batch_delay_ms=60000)

@register.register_method(["y", "batch"])
def predict(x, scale):
    return register.add_stage(model, x, scale, outputs_count=2)
"""
    engine = serve(config, "scaled")
    runs = []
    engine.scheduler.on_run = lambda name, count, limit, seconds: runs.append((name, count, limit))
    answers = [Answer() for _ in range(4)]
    for answer in answers:
        x = np.ones(3, np.float32)
        engine.submit("predict", [{"x": x, "scale": x}], answer)
    for answer in answers:
        answer.wait()
    assert runs == [("scaled.mindir", 4, 4)]


def test_a_delay_ends(serve, infer):
    config = """
model = register.declare_model("add_sub.mindir", "MindIR")

@register.register_method(["a", "b"])
def predict(x, y):
    return register.add_stage(model, x, y, outputs_count=2)
"""
    engine = serve(config, "add_sub", max_batch_delay_ms=20)
    x = np.ones(3, np.float32)
    began = time.monotonic()
    assert infer(engine, "predict", {"x": x, "y": x})[0]["a"].sum() == 6
    assert time.monotonic() - began >= 0.019
    assert len(infer(engine, "predict", *[{"x": x, "y": x}] * 5)) == 5


def test_higher_priorities_go_first(serve, Answer):
    engine = serve(GATE, threads=1)
    first = Answer()
    engine.submit("predict", [{"x": "wait"}], first)
    assert module(engine).entered.acquire(timeout=60)
    answers = {p: Answer() for p in (0, 5, -1, 3)}
    for priority, answer in answers.items():
        engine.submit("predict", [{"x": f"{priority}"}], answer, priority=priority)
    module(engine).gate.set()
    for answer in (first, *answers.values()):
        answer.wait()
    assert module(engine).seen == ["wait", "5", "3", "0", "-1"]


def test_what_waits_longer_than_its_deadline_never_runs(serve, Answer):
    engine = serve(GATE, threads=1)
    first, late, other = Answer(), Answer(), Answer()
    engine.submit("predict", [{"x": "wait"}], first)
    assert module(engine).entered.acquire(timeout=60)
    engine.submit("predict", [{"x": "late"}], late, deadline=time.monotonic() + 0.05)
    engine.submit("predict", [{"x": "other"}], other)
    (error,) = late.wait()  # while the function still waits
    assert isinstance(error, ServingError) and error.code == Code.DEADLINE
    module(engine).gate.set()
    assert other.wait() == [{"y": "other"}]
    assert "late" not in module(engine).seen


def test_a_function_that_hangs_does_not_stop_the_others(serve, infer, Answer):
    engine = serve(GATE)
    hung = Answer()
    engine.submit("predict", [{"x": "wait"}], hung)
    assert module(engine).entered.acquire(timeout=60)
    assert infer(engine, "predict", {"x": "a"}, {"x": "b"}) == [{"y": "a"}, {"y": "b"}]
    module(engine).gate.set()
    assert hung.wait() == [{"y": "wait"}]


def test_threads_that_hang_beyond_their_deadline_are_replaced(serve, infer, Answer):
    engine = serve(GATE, threads=2)
    hung = [Answer() for _ in range(6)]
    for answer in hung:
        engine.submit("predict", [{"x": "wait"}], answer, deadline=time.monotonic() + 0.05)
    for answer in hung:
        assert answer.wait()[0].code == Code.DEADLINE
    assert infer(engine, "predict", {"x": "a"}) == [{"y": "a"}]
    module(engine).gate.set()
    assert infer(engine, "predict", {"x": "b"}) == [{"y": "b"}]


def test_one_at_a_time_holds_for_the_functions_that_say_so(serve, infer):
    config = """
inside, most = [0], [0]
lock = threading.Lock()

@register.one_at_a_time
def f(x):
    with lock:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
    time.sleep(0.005)
    with lock:
        inside[0] -= 1
    return x

@register.register_method("y")
def predict(x):
    return register.add_stage(f, x, outputs_count=1)
"""
    engine = serve(config)
    assert len(infer(engine, "predict", *({"x": k} for k in range(8)))) == 8
    assert module(engine).most == [1]


def test_a_function_that_waits_runs_in_several_threads(serve, infer):
    config = """
together = threading.Barrier(2, timeout=60)

def f(x):
    together.wait()
    return x

@register.register_method("y")
def predict(x):
    return register.add_stage(f, x, outputs_count=1)
"""
    engine = serve(config)
    assert infer(engine, "predict", {"x": "a"}, {"x": "b"}) == [{"y": "a"}, {"y": "b"}]


def test_a_worker_without_models_asks_another_one(serve, infer):
    holder = serve(PIPELINE, "add_sub")
    asked = []

    def call_model(key, subgraph, inputs, done):
        asked.append((key, subgraph))
        holder.run_model(key, subgraph, inputs, done)

    extra = serve(PIPELINE, functions_only=True, call_model=call_model)
    x = np.array([1.0, 5.0, 2.0])
    fine, bad = infer(extra, "predict", {"x": x, "y": x}, {"x": np.zeros(2), "y": x})
    assert fine["place"] == 1 and fine["total"].dtype == np.float32
    assert "three numbers" in bad.message
    assert set(asked) == {("add_sub.mindir", 0)}
    (error,) = infer(extra, "plain", {"x": x, "y": x})
    assert "should be float32, but is float64" in error.message


def test_unknown_models_of_other_workers_are_errors(serve, Answer):
    engine = serve(PIPELINE, "add_sub")
    for key, subgraph, inputs in (
        ("absent", 0, [(1,)]),
        ("add_sub.mindir", 1, [(1,)]),
        ("add_sub.mindir", 0, [()]),
    ):
        answer = Answer()
        engine.run_model(key, subgraph, inputs, answer)
        assert isinstance(answer.wait()[0], ServingError)


# ---- the end -----------------------------------------------------------------------------------------------


def test_close_answers_what_is_there_and_refuses_the_rest(serve, Answer):
    engine = serve(GATE, threads=1)
    running, waiting, late = Answer(), Answer(), Answer()
    engine.submit("predict", [{"x": "wait"}], running)
    assert module(engine).entered.acquire(timeout=60)
    engine.submit("predict", [{"x": "a"}], waiting)
    assert engine.pending() == 2
    closing = threading.Thread(target=engine.close, args=(60,))
    closing.start()
    while not engine.scheduler._closing:
        time.sleep(0.001)
    engine.submit("predict", [{"x": "b"}], late)
    assert late.wait()[0].code == Code.STOPPING
    module(engine).gate.set()
    closing.join(60)
    assert running.wait() == [{"y": "wait"}] and waiting.wait() == [{"y": "a"}]
    assert engine.pending() == 0


def test_close_does_not_wait_longer_than_it_is_told(serve, Answer):
    engine = serve(GATE, threads=1)
    gate = module(engine).gate
    running, waiting = Answer(), Answer()
    engine.submit("predict", [{"x": "wait"}], running)
    assert module(engine).entered.acquire(timeout=60)
    engine.submit("predict", [{"x": "a"}], waiting)
    engine.close(0.01)
    assert running.wait()[0].code == waiting.wait()[0].code == Code.STOPPING
    gate.set()


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_end_with_their_engine(serve, infer, threads):
    engine = serve(GATE, threads=threads)
    infer(engine, "predict", *({"x": k} for k in range(20)), deadline=time.monotonic() + 60)
    engine.close(60)
    left = [t.name for t in threading.enumerate() if t.name.startswith("serving-demo") and t.is_alive()]
    assert not left
