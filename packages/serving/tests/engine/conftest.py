"""Models for the engine's tests, exported once, and engines on servables made of them."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia_serving.engine import Engine

HEAD = """
import time, threading
import numpy as np
from mycelia_serving.servable import register
"""
PATIENCE_S = 60  # for answers; far more than they take


class Add(nn.Cell):
    def construct(self, x, y):
        return x + y


class AddSub(nn.Cell):
    def construct(self, x, y):
        return x + y, x - y


class Scaled(nn.Cell):
    """The second input has no batch dimension. The result shows how large the batch was."""

    def construct(self, x, scale):
        return x * scale, ops.ones_like(x) * x.shape[0]


class Counter(nn.Cell):
    """Changes a parameter in every call, and has results within results."""

    def __init__(self):
        super().__init__()
        self.total = ms.Parameter(ms.Tensor(np.ones(2, np.float32)), name="total")

    def construct(self, x):
        self.total += x + 1
        return (self.total + 0, x), x


class Bfloat(nn.Cell):
    def construct(self, x, y):
        return x.astype(ms.float32) * y


class While(nn.Cell):
    def construct(self, x, n):
        k = n * 0
        while k < n:
            x, k = x * 2, k + 1
        return x


class Sums(nn.Cell):
    def construct(self, x):
        return x.sum(axis=-1)


class Double(nn.Cell):
    def construct(self, x):
        return x * 2


def zeros(*shape, dtype=np.float32):
    return ms.Tensor(np.zeros(shape, dtype))


def open_(*shape):
    return ms.Tensor(shape=list(shape), dtype=ms.float32)


MODELS = {
    "add": lambda: (Add(), zeros(2, 2), zeros(2, 2)),
    "add_int": lambda: (Add(), zeros(2, dtype=np.int32), zeros(2, dtype=np.int32)),
    "add_sub": lambda: (AddSub(), zeros(2, 3), zeros(2, 3)),  # with batch dimension: a batch of 2
    "scaled": lambda: (Scaled(), zeros(4, 3), zeros(3)),
    "counter": lambda: (Counter(), zeros(2)),
    "bfloat": lambda: (Bfloat(), zeros(2).astype(ms.bfloat16), zeros(2)),
    "while": lambda: (While(), zeros(2), ms.Tensor(np.int32(0))),
    "sums": lambda: (Sums(), zeros(3, 4)),
    "double_any": lambda: (Double(), open_(None, 3)),
    "double_shape": lambda: (Double(), open_(None, None)),
}


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Exports a model of the table and returns its path."""
    home = tmp_path_factory.mktemp("models")

    def path(name: str) -> Path:
        file = home / f"{name}.mindir"
        if not file.exists():
            net, *inputs = MODELS[name]()
            ms.export(net, *inputs, file_name=str(file), file_format="MINDIR")
        return file

    return path


@pytest.fixture
def serve(tmp_path, models):
    """Starts an engine on a config and the models it names."""
    engines = []

    def start(config: str, *names: str, version: int = 1, **options) -> Engine:
        home = tmp_path / "demo"
        (home / str(version)).mkdir(parents=True, exist_ok=True)
        (home / "servable_config.py").write_text(HEAD + config)
        for name in names:
            shutil.copyfile(models(name), home / str(version) / f"{name}.mindir")
        engine = Engine(str(tmp_path), "demo", **options)
        engine.start()
        engines.append(engine)
        return engine

    yield start
    for engine in engines:
        engine.close()


class Answer:
    """What `done` was called with."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.results: list = []

    def __call__(self, results: list) -> None:
        assert not self.ready.is_set(), "answered twice"
        self.results = results
        self.ready.set()

    def wait(self) -> list:
        assert self.ready.wait(PATIENCE_S), "no answer"
        return self.results


@pytest.fixture
def infer():
    """Runs instances through a method and returns the results."""

    def run(engine: Engine, method: str, *instances: dict, **options) -> list:
        answer = Answer()
        engine.submit(method, list(instances), answer, **options)
        return answer.wait()

    return run


@pytest.fixture(name="Answer")
def _answer():
    return Answer
