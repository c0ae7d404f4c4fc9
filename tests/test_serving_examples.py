"""The servables of the examples, exported and called as their clients do."""

from __future__ import annotations

import importlib.util
import io
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import mycelia as ms
from mycelia_serving.engine import Engine

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture
def infer(tmp_path, monkeypatch):
    """Copies an example, exports its models, and runs instances through a method of a servable."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    engines = []

    def run(example: str, script: str, export, servable: str, method: str, *instances: dict) -> list:
        home = tmp_path / example
        if not home.exists():
            shutil.copytree(EXAMPLES / example, home, ignore=shutil.ignore_patterns("[0-9]*", "__pycache__"))
            spec = importlib.util.spec_from_file_location(f"example_{example}", EXAMPLES / example / script)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            export(module, home)
        engine = Engine(str(home), servable, max_batch_size=4)
        engines.append(engine)
        engine.start()
        ready, results = threading.Event(), []

        def done(answer: list) -> None:
            results.extend(answer)
            ready.set()

        engine.submit(method, list(instances), done)
        assert ready.wait(60)
        return results

    yield run
    for engine in engines:
        engine.close()
    sys.modules.pop("lenet", None)


def additions(module, home: Path) -> None:
    module.export_models(home)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the older style is part of the example
def test_the_addition_in_both_styles(infer):
    x1, x2 = np.arange(4).reshape(2, 2), np.eye(2)
    (result,) = infer("serving_add", "export_models.py", additions, "add", "add_cast", {"x1": x1, "x2": x2})
    np.testing.assert_array_equal(result["y"], x1 + x2)
    rows = np.arange(9, dtype=np.float32).reshape(3, 3)
    instances = [{"x1": row, "x2": row} for row in rows]
    results = infer("serving_add", "export_models.py", additions, "add_batch", "add_rows", *instances)
    np.testing.assert_array_equal([r["y"] for r in results], rows * 2)


def test_lenet_reads_image_files(infer):
    def export(module, home: Path) -> None:
        ms.set_seed(1)
        net = module.LeNet5()
        net.set_train(False)
        module.export_model(net, home / "lenet")

    files = []
    for shade in (0, 90, 200):
        file = io.BytesIO()
        Image.fromarray(np.full((28, 28), shade, np.uint8)).save(file, "PNG")
        files.append({"image": file.getvalue()})
    export_script = "export_model.py"
    one = infer("serving_lenet", export_script, export, "lenet", "classify", *files, {"image": b"no image"})
    many = infer("serving_lenet", export_script, export, "lenet", "classify_many", *files)
    assert "UnidentifiedImageError" in one.pop().message
    for a, b in zip(one, many, strict=True):
        assert a["digit"] == b["digit"] and 0 <= a["digit"] <= 9
        np.testing.assert_allclose(a["probability"], b["probability"], rtol=1e-5)
