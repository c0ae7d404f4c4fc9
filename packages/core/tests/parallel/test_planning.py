"""`mycelia plan`: what a training costs on many ranks, by a model that is compared with what it models."""

from __future__ import annotations

import json
import sys
import textwrap
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from mycelia.cli import app
from mycelia.faces import compat
from mycelia.parallel.planning import (
    NETWORKS,
    STRATEGIES,
    Level,
    Network,
    Operator,
    Step,
    price,
    read_network,
    text_of,
)
from mycelia.parallel.planning.drawing import svg
from mycelia.parallel.planning.network import fitted
from mycelia.parallel.planning.report import sizes_of

SCRIPT = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn

net = nn.SequentialCell(nn.Dense(100, 200), nn.ReLU(), nn.Dense(200, 10))
optimizer = nn.Adam(net.trainable_params(), 1e-3)
loss = nn.CrossEntropyLoss()
x, y = np.ones((32, 100), np.float32), np.zeros(32, np.int32)
if "model" in sys.argv:
    rows = ms.dataset.NumpySlicesDataset((np.tile(x, (20, 1)), np.tile(y, 20)), shuffle=False)
    ms.Model(net, loss, optimizer).train(3, rows.batch(32))
else:
    gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
    def step(x, y):
        value, gradients = gradient(x, y)
        optimizer(gradients)
        return value
    if "graph" in sys.argv:
        step = ms.jit(step)
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1000):
        step(ms.Tensor(x), ms.Tensor(y))
print("it went on to its end")
"""
WEIGHTS = 4 * (100 * 200 + 200 + 200 * 10 + 10)
PRODUCTS = 2 * 32 * (100 * 200 * 2 + 200 * 10 * 3)  # the gradient by the images is not asked for


@pytest.fixture(autouse=True)
def process_as_before(monkeypatch):
    """Scripts take the process over."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", sys.path[:])
    yield
    compat.uninstall()


def told(*arguments: str):
    return CliRunner().invoke(app, ["plan", *arguments])


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return str(path)


@pytest.mark.parametrize("way", ["eager", "graph", "model"])
def test_a_script_is_priced_unmodified(script, way):
    got = told(script, "--ranks", "6", "--strategy", "all", "--json", "--", way)
    assert got.exit_code == 0, got.output
    assert "went on" not in got.output  # it ends when its steps are known
    plans = json.loads(got.output)
    assert [(p["strategy"], p["ranks"]) for p in plans[:5]] == [
        ("data_parallel", n) for n in (1, 2, 4, 6)
    ] + [("zero1", 1)]
    memory = plans[0]["memory"]
    assert memory["weights"] == memory["gradients"] == WEIGHTS
    assert 2 * WEIGHTS <= memory["states"] < 2 * WEIGHTS + 100  # two moments, and powers of the betas
    assert memory["activations"] >= 32 * 200 * 4
    assert plans[0]["exposed"] == 0 and 0 < plans[0]["compute"] == plans[3]["compute"]
    assert [p["efficiency"] for p in plans[:4]] == sorted([p["efficiency"] for p in plans[:4]], reverse=True)
    zero1 = plans[7]
    assert (zero1["strategy"], zero1["ranks"]) == ("zero1", 6)
    assert zero1["memory"]["states"] == -(-memory["states"] // 6)


def test_operations_are_those_of_the_formula(script):
    for way in ("eager", "graph"):
        got = told(script, "--", way)
        flops = float(got.output.split(": ")[1].split(" GFLOP")[0]) * 1e9
        assert PRODUCTS < flops < 1.15 * PRODUCTS, got.output
        assert "efficiency" in got.output and "data_parallel" in got.output


def halved(data: list[np.ndarray], level: Level) -> tuple[list[np.ndarray], float]:
    """Recursive halving, made: what each rank has at the end, and the time that its messages take."""
    ranks, seconds = len(data), 0.0
    held = [(0, data[0].size)] * ranks
    distance = ranks // 2
    while distance:
        given = [d.copy() for d in data]
        longest = 0
        for rank in range(ranks):
            first, last = held[rank]
            middle = (first + last) // 2
            mine = (first, middle) if rank & distance == 0 else (middle, last)
            data[rank][mine[0] : mine[1]] += given[rank ^ distance][mine[0] : mine[1]]
            held[rank] = mine
            longest = max(longest, (mine[1] - mine[0]) * data[0].itemsize)
        seconds += level.latency_s + longest / level.bytes_per_s
        distance //= 2
    return [data[rank][slice(*held[rank])] for rank in range(ranks)], seconds


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
def test_time_is_that_of_the_messages(ranks):
    level = Level("machine", 16, 1e-5, 1e9)
    data = [np.arange(64.0) * rank for rank in range(ranks)]
    whole = sum(data)
    parts, seconds = halved([d.copy() for d in data], level)
    assert sorted(np.concatenate(parts)) == sorted(whole)
    network = Network((level,))
    assert network.reduce_scatter(ranks, 512) == pytest.approx(seconds)
    doubled = (ranks - 1).bit_length() * (1e-5 + 512 / 1e9)
    assert network.all_reduce(ranks, 512) == pytest.approx(min(2 * seconds, doubled))


def test_outer_levels_get_a_share_of_the_bytes():
    inner, outer = Level("machine", 4, 0.0, 4e9), Level("network", 8, 0.0, 1e9)
    network, size = Network((inner, outer)), 1 << 20
    assert network.most == 32
    expected = 2 * (3 / 4 * size / 4e9 + 7 / 8 * size / 4 / 1e9)
    assert network.all_reduce(32, size) == pytest.approx(expected)
    assert network.all_reduce(3, size) == pytest.approx(2 * 2 / 3 * size / 4e9)  # one machine, not full
    assert [network.all_reduce(n, size) for n in (1, 4, 8, 32)] == sorted(
        network.all_reduce(n, size) for n in (1, 4, 8, 32)
    )


def test_a_measured_network_gives_its_times_back():
    true = Network((Level("machine", 4, 3e-5, 2e9),))
    times = [(size, 2 * true.reduce_scatter(4, size)) for size in (4096, 1 << 20, 1 << 24)]
    level = fitted("machine", 4, times)
    assert (level.latency_s, level.bytes_per_s) == pytest.approx((3e-5, 2e9))
    with pytest.raises(ValueError, match="two sizes"):
        fitted("machine", 4, [(8, 1.0), (8, 2.0)])


def test_this_machine_is_measured(tmp_path):
    out = tmp_path / "here.toml"
    got = told("--measure-network", "2", "--network", str(out))
    assert got.exit_code == 0, got.output
    (level,) = read_network(out).levels
    assert level.ranks == 2 and level.bytes_per_s > 1e6


def test_descriptions_survive_the_file(tmp_path):
    for name, network in NETWORKS.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(text_of(network))
        assert read_network(path) == network
    odd = Network((Level('a "name"\n\\', 2, 0, 1.5),))
    path.write_text(text_of(odd))
    assert read_network(path) == odd


STEP = Step(8, 1000, 1000, 2000, 500, (Operator("a", 0.3, 6e9, 3e6, 0.1), Operator("b", 0.1, 0, 0, 0)))


def test_memory_is_what_zero_keeps():
    """DeepSpeed's formula: weights, gradients and states, of which each stage divides one more."""
    network = NETWORKS["ethernet-10g"]
    kept = [price(STEP, network, 4, name).memory for name in STRATEGIES]
    assert [(m["weights"], m["gradients"], m["states"], m["activations"]) for m in kept] == [
        (1000, 1000, 2000, 500), (1000, 1000, 500, 500), (1000, 250, 500, 500), (250, 250, 500, 500),
    ]  # fmt: skip


def test_what_the_backward_pass_hides():
    link = Network((Level("machine", 2, 0.0, 1000.0),))  # all_reduce of n bytes: n / 1000 s
    plain = price(STEP, link, 2, bucket=250)
    assert (plain.communication, plain.exposed, plain.seconds) == pytest.approx((1.0, 1.0, 1.4))
    beside = price(STEP, link, 2, bucket=250, overlap=True)
    # Four buckets; three of them have three quarters of the backward pass to hide in.
    assert beside.exposed == pytest.approx(0.25 + 0.75 - 2 / 3 * 0.4 * 3 / 4)
    assert price(STEP, link, 2, bucket=2000, overlap=True).exposed == pytest.approx(1.0)
    assert price(STEP, link, 2, "zero1").communication == pytest.approx(1.0)  # half the way, and weights back
    assert price(STEP, link, 2, "zero3").communication == pytest.approx(1.5)


def test_another_device():
    assert STEP.on(6e10, 1e9) == pytest.approx(3 * 0.1 + 0.1)  # as near to the limit as here; b as it is
    assert STEP.on(1e15, 1e6) == pytest.approx(3 * 3.0 + 0.1)


def test_sizes_double_up_to_the_most():
    assert sizes_of(1) == [1] and sizes_of(2) == [1, 2] and sizes_of(6) == [1, 2, 4, 6]
    assert sizes_of(8) == [1, 2, 4, 8]


@pytest.mark.parametrize(
    "text, told_",
    [
        ("no toml [", "no TOML file"),
        ("", "must hold tables"),
        ("level = 3", "must hold tables"),
        ("[[level]]\nname = 'a'", "must have bytes_per_s"),
        ("[[level]]\nname = 'a'\nranks = 0\nlatency_s = 0\nbytes_per_s = 1", "ranks of 'a'"),
        ("[[level]]\nname = 'a'\nranks = 2\nlatency_s = -1\nbytes_per_s = 1", "latency_s of 'a'"),
        ("[[level]]\nname = 'a'\nranks = 2\nlatency_s = nan\nbytes_per_s = 1", "latency_s of 'a'"),
        ("[[level]]\nname = 'a'\nranks = 2\nlatency_s = 0\nbytes_per_s = 0", "bytes_per_s of 'a'"),
        ("[[level]]\nname = 'a'\nranks = true\nlatency_s = 0\nbytes_per_s = 1", "ranks of 'a'"),
    ],
)
def test_bad_networks_are_named(tmp_path, text, told_):
    path = tmp_path / "network.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=told_):
        read_network(path)


def test_bad_requests_are_named_before_the_script_runs(script, tmp_path):
    mark = tmp_path / "ran"
    (tmp_path / "train.py").write_text(f"open({str(mark)!r}, 'w')")
    network = tmp_path / "two.toml"
    network.write_text(text_of(Network((Level("machine", 2, 0.0, 1.0),))))
    for arguments, expected in (
        (("--strategy", "zero4"), "zero4"),
        (("--strategy", "pipeline"), "no price yet"),
        (("--network", str(network), "--ranks", "3"), "[1, 2]"),
        (("--network", str(tmp_path / "none.toml")), "none.toml"),
        (("--flops", "1e12"), "--bandwidth"),
    ):
        got = told(script, *arguments)
        assert got.exit_code == 2 and expected in " ".join(got.output.split()), got.output
    assert not mark.exists()
    assert told().exit_code == 2 and told(script, "--measure-network", "2").exit_code == 2


def test_scripts_that_do_not_train_enough(script):
    got = told(script, "--", "eager", "2")
    assert got.exit_code == 1 and "too few steps" in got.output
    assert told(script, "--json", "--", "eager", "3").exit_code == 0  # one is enough


def test_faults_of_the_script_are_its_own(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import mindspore as ms\nms.ops.reshape(ms.Tensor([1.0]), (2,))\n")
    got = told(str(path))
    assert got.exit_code == 1 and "reshape" in got.output and "too few steps" not in got.output


def test_curves_stand_where_the_plans_are(script, tmp_path):
    links, file = NETWORKS["ethernet-10g"], tmp_path / "curves.svg"
    names, counts = ("data_parallel", "zero1"), (1, 2, 4, 8)
    plans = [price(STEP, links, count, name) for name in names for count in counts]
    file.write_text(svg(plans))
    lines = [e for e in ElementTree.parse(file).iter() if e.tag.endswith("polyline")]
    curves = [e for e in lines if e.get("class") != "key"]
    assert [e.get("class") for e in curves] == [*names, *names]  # efficiency, then memory
    for number, (curve, value) in enumerate(zip(curves, ["efficiency"] * 2 + ["bytes"] * 2)):
        points = [tuple(map(float, p.split(","))) for p in curve.get("points").split()]
        x, y = np.array(points).T
        np.testing.assert_allclose(np.diff(x), np.diff(x)[0], atol=0.11)  # each step twice as many ranks
        own = [getattr(plan, value) for plan in plans if plan.strategy == names[number % 2]]
        most = 1.0 if value == "efficiency" else max(plan.bytes for plan in plans)
        low, high = 224.0, 34.0  # of the panel, in pixels
        np.testing.assert_allclose(y, [low + (high - low) * v / most for v in own], atol=0.11)
    drawn = told(script, "--ranks", "2", "--steps", "2", "--svg", str(tmp_path / "script.svg"), "--", "graph")
    assert drawn.exit_code == 0 and "efficiency" in (tmp_path / "script.svg").read_text()
    with pytest.raises(ValueError, match="no plans"):
        svg([])
