"""The compile cache on disk, as scripts see it: each run is a process of its own."""

import json
import os
import subprocess
import sys

import pytest

from mycelia.engine.compile.fingerprint import tree

NET = """
import json, sys
import numpy as np
import mycelia as ms
from mycelia import nn, ops
from helper import scaled
FACTOR = 2.0

class Net(nn.Cell):
    def __init__(self, power=2, width=4):
        super().__init__()
        self.dense = nn.Dense(3, width)
        self.drop = nn.Dropout(p=0.25)
        self.power = power
    def construct(self, x):
        if x.sum() > 1000:
            x = x * 0.5
        return self.drop(self.dense(x)) ** self.power * FACTOR + scaled(x).sum()

ms.set_seed(1)
rows, power = int(sys.argv[1]), int(sys.argv[2])
net = Net(power)
net.set_train()
update = nn.Adam(net.trainable_params(), 0.01)
gradient = ms.value_and_grad(lambda x: net(x).mean(), None, update.parameters)

@ms.jit
def step(x):
    value, gradients = gradient(x)
    update(gradients)
    return {"loss": value, "more": (value * 2, "text")}

x = ms.Tensor(np.linspace(-1, 1, rows * 3, dtype=np.float32).reshape(rows, 3))
losses = []
for _ in range(3):
    found = step(x)
    assert found["more"][1] == "text"
    losses.append(found["loss"].asnumpy().tobytes().hex())
weights = [p.asnumpy().tobytes().hex() for p in net.get_parameters()]
info = step.cache_info()
print(json.dumps({"loaded": info.loaded, "captures": info.captures, "result": [losses, weights]}))
"""
HELPER = """
def scaled(x):
    return x * 3.0
"""
# Mycelia's own source is part of what a file depends on. Someone may be editing it while the tests run.
RUN = """
import runpy
from mycelia.compile import fingerprint
fingerprint.tree = lambda directory: "as it was"
runpy.run_path("main.py", run_name="__main__")
"""


def start(folder, *arguments, **environment):
    full = {
        **os.environ,
        "MYCELIA_COMPILE_CACHE": "1",
        "MYCELIA_COMPILE_CACHE_PATH": str(folder / "cache"),
        "MYCELIA_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **environment,
    }
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    return subprocess.Popen(command, cwd=folder, env=full, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err.decode()
    return {**json.loads(out.decode().splitlines()[-1]), "log": err.decode()}


def run(folder, *arguments, **environment):
    return finish(start(folder, *(arguments or (4, 2)), **environment))


@pytest.fixture
def script(tmp_path):
    (tmp_path / "main.py").write_text(NET)
    (tmp_path / "helper.py").write_text(HELPER)
    return tmp_path


def files(folder):
    return sorted((folder / "cache" / "graph_cache").glob("*.graph"))


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_second_process_loads_and_trains_alike(script):
    plain = run(script, MYCELIA_COMPILE_CACHE="0")
    first, second = run(script), run(script)
    assert (plain["loaded"], plain["captures"]) == (0, 1)
    assert (first["loaded"], first["captures"]) == (0, 1)
    assert (second["loaded"], second["captures"]) == (1, 0)
    assert plain["result"] == first["result"] == second["result"]
    assert len(files(script)) == 1


EDITS = [
    ("main.py", "value * 2", "value * 4"),
    ("main.py", "FACTOR = 2.0", "FACTOR = 5.0"),
    ("main.py", "nn.Dropout(p=0.25)", "nn.Dropout(p=0.5)"),
    ("main.py", "net.set_train()", "net.set_train(False)"),
    ("main.py", "net = Net(power)", "net = Net(power, 5)"),
    ("helper.py", "x * 3.0", "x * 7.0"),
]


def test_an_edit_compiles_anew(script):
    run(script)
    for file, old, new in EDITS:
        edit(script / file, old, new)
        found = run(script)
        assert (found["loaded"], found["captures"]) == (0, 1), new
    assert found["result"] == run(script, MYCELIA_COMPILE_CACHE="0")["result"]


def test_other_values_shapes_and_settings_compile_anew(script):
    run(script, 4, 2)
    for arguments, environment in [
        ((4, 3), {}),
        ((5, 2), {}),
        ((4, 2), {"MYCELIA_PASSES": "-fold"}),
        ((4, 2), {"MYCELIA_STRICT_ACCURACY": "1"}),
    ]:
        found = run(script, *arguments, **environment)
        assert (found["loaded"], found["captures"]) == (0, 1), (arguments, environment)
    assert run(script, 4, 3)["loaded"] == 1
    assert len(files(script)) == 5


def test_a_damaged_file_is_a_warning(script):
    first = run(script)
    (file,) = files(script)
    good = file.read_bytes()
    changed = bytearray(good)
    changed[len(good) // 2] ^= 1
    for data in (good[:-7], changed, b"PK" * 500, b""):
        file.write_bytes(data)
        found = run(script)
        assert found["loaded"] == 0 and found["result"] == first["result"]
        assert "compile cache compiles anew" in found["log"]
        assert file.read_bytes() == good


def test_a_file_of_another_function_is_a_warning(script):
    run(script, 4, 2)
    (first,) = files(script)
    run(script, 5, 2)
    (second,) = set(files(script)) - {first}
    second.write_bytes(first.read_bytes())
    found = run(script, 5, 2)
    assert found["loaded"] == 0 and "belongs to another function" in found["log"]


def test_processes_at_once(script):
    results = [finish(p) for p in [start(script, 4, 2) for _ in range(3)]]
    assert all(r["result"] == results[0]["result"] for r in results)
    assert len(files(script)) == 1
    assert run(script)["loaded"] == 1


def test_a_directory_that_cannot_be_written_is_a_warning(script):
    (script / "cache").write_text("a file where the folder should be")
    found = run(script)
    assert found["captures"] == 1
    assert "the compile cache cannot" in found["log"]


def test_a_read_only_directory_still_serves(script):
    run(script)
    folder = script / "cache" / "graph_cache"
    folder.chmod(0o555)
    try:
        assert run(script)["loaded"] == 1
        assert run(script, 5, 2)["captures"] == 1
    finally:
        folder.chmod(0o755)


def run_all(folder, codes, **environment):
    """Runs one script in which each piece of code is a module with a function `f`."""
    for i, code in enumerate(codes):
        text = "import numpy as np\nimport mycelia as ms\n" + code
        (folder / f"part{i}.py").write_text(text)
    (folder / "main.py").write_text(ALL.format(len(codes)))
    return run(folder, **environment)


ALL = """
import importlib, json
import numpy as np
import mycelia as ms
x = ms.Tensor(np.ones(3, np.float32))
found = {{"loaded": [], "captures": [], "result": []}}
for i in range({}):
    f = ms.jit(importlib.import_module(f"part{{i}}").f)
    found["result"].append(f(x).asnumpy().tolist())
    found["loaded"].append(f.cache_info().loaded)
    found["captures"].append(f.cache_info().captures)
print(json.dumps(found))
"""
HIDDEN = [
    "import time\ndef f(x): return x * time.time()",
    "import os\ndef f(x): return x * len(os.environ)",
    "def f(x): return x * float(np.random.rand())",
    "from random import random\ndef f(x): return x * random()",
    "from numpy.random import rand\ndef f(x): return x * float(rand())",
    "def f(x): return x * len(open(__file__).read())",
    "seen = []\ndef f(x):\n    seen.append(1)\n    return x * 2",
    "class Count(int):\n    pass\nn = Count(3)\ndef f(x): return x * int(n)",
    "import collections\nq = collections.deque([1])\ndef f(x): return x * q[0]",
    "it = iter([4, 5])\ndef f(x): return x * next(it)",
    "class K: pass\nkeep = {K()}\ndef f(x): return x * len(keep)",
    "def f(x): return x * len(vars())",
    "import datetime\ndef f(x): return x * datetime.datetime.now().year",
]


def test_what_depends_on_more_than_the_walk_sees_is_not_kept(tmp_path):
    for _ in range(2):
        found = run_all(tmp_path, HIDDEN, GLOG_v="0")
        assert found["captures"] == [1] * len(HIDDEN) and not any(found["loaded"])
        assert found["log"].count("is not kept on disk") == len(HIDDEN)
    assert not files(tmp_path)


VALUES = [  # code, and a change of it
    ("c = ms.Tensor([1.0, 2.0, 3.0])\ndef f(x): return x * c", "3.0]", "4.0]"),
    ("t = np.arange(3)\ndef f(x): return x * ms.Tensor(t)", "arange(3)", "arange(1, 4)"),
    ("class K:\n    n = 1\n    def g(self): return self.n\ndef f(x): return x * K().g()", "n = 1", "n = 2"),
    ("table = {'a': [1, (2, 3)]}\ndef f(x): return x * table['a'][1][1]", "(2, 3)", "(2, 5)"),
    ("def g(n=3): return n\ndef f(x): return x * g()", "n=3", "n=4"),
    ("half = ms.Tensor([0.5], ms.bfloat16)\ndef f(x): return x * half.astype(ms.float32)", "0.5", "0.25"),
]  # fmt: skip


def test_values_of_globals_count(tmp_path):
    codes = [code for code, _, _ in VALUES]
    first = run_all(tmp_path, codes)
    ones, zeros = [1] * len(codes), [0] * len(codes)
    assert run_all(tmp_path, codes) == {**first, "loaded": ones, "captures": zeros}
    others = [code.replace(old, new) for code, old, new in VALUES]
    found = run_all(tmp_path, others)
    assert (found["loaded"], found["captures"]) == (zeros, ones)
    assert all(a != b for a, b in zip(first["result"], found["result"]))


def test_a_global_of_another_module_counts_without_an_edit(tmp_path):
    code = "import helper\ndef f(x): return x + helper.inner.value(x)"
    (tmp_path / "helper.py").write_text("import inner")
    for number in (1, 1, 2):
        (tmp_path / "inner.py").write_text(f"def value(x):\n    return x.max() - {number}")
        found = run_all(tmp_path, [code])
        assert found["result"] == [[2.0 - number] * 3]
    assert len(files(tmp_path)) == 2


def test_every_source_file_of_a_directory_counts(tmp_path):
    (tmp_path / "inner").mkdir()
    found = [tree.__wrapped__(str(tmp_path))]
    for path, text in [
        ("a.py", "x = 1"),
        ("inner/b.py", "x = 1"),
        ("inner/b.py", "x = 2"),
        ("notes.txt", "x"),
    ]:
        (tmp_path / path).write_text(text)
        found.append(tree.__wrapped__(str(tmp_path)))
    assert len(set(found)) == 4 and found[-1] == found[-2]
