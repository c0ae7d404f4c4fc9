"""Every check of `mycelia doctor --train`: what was planted is found, and a clean training is not blamed."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia import nn, ops
from mycelia.train.checks import CHECKS, collecting, examine


class Net(nn.Cell):
    def __init__(self, inner=None, softmax=False):
        super().__init__()
        self.fc1 = nn.Dense(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.inner = inner
        self.fc2 = nn.Dense(8, 3)
        self.softmax = nn.Softmax() if softmax else None

    def construct(self, x):
        x = ops.relu(self.norm(self.fc1(x)))
        x = self.fc2(x if self.inner is None else self.inner(x))
        return x if self.softmax is None else self.softmax(x)


def data(count=96, scale=1.0, shuffle=True, batch=8, change=lambda x, y: None):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((count, 4)).astype(np.float32)
    y = x[:, :3].argmax(1).astype(np.int32)
    x = x * np.float32(scale)
    change(x, y)
    return ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=shuffle).batch(batch, drop_remainder=True)


def train(
    net=None, train_data=None, eval_data=None, epochs=3, rate=0.02, loss=None, given=None, source=None,
    before=lambda net: None, callbacks=None,
    **model_options,
):  # fmt: skip
    """The facts of a training; as it stands, of one in which nothing is wrong."""
    ms.set_seed(1)
    ds.config.set_seed(1)
    net = net or Net()
    before(net)
    loss = loss or nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    parameters = given(net) if given else net.trainable_params()
    model = ms.Model(net, loss, nn.Adam(parameters, rate), metrics={"accuracy"}, **model_options)
    with collecting(source) as facts:
        with contextlib.suppress(ValueError):  # of labels that no class has
            model.train(epochs, train_data or data(), callbacks, dataset_sink_mode=False)
        model.eval(eval_data or data(32), callbacks, dataset_sink_mode=False)
    return facts


def said(facts, number, reference=None):
    (result,) = [r for r in examine(facts, reference) if r.check == number]
    return result


@pytest.fixture(scope="module")
def clean():
    return train()


def test_a_clean_training_is_not_blamed(clean):
    results = examine(clean, clean.summary())
    assert not [r for r in results if r.verdict == "found"], results
    assert [r.check for r in results if r.verdict == "needs you"] == ["ds.02"]
    assert len(results) == len(CHECKS) == 30 and all(r.evidence for r in results)
    without = [r.check for r in examine(clean) if r.verdict == "needs you"]
    assert without == ["ds.02", "ds.04", "ref.01", "ref.02", "ref.03", "ref.04"]


def nan(x, y):
    x[3, 1] = np.nan


def beyond(x, y):
    y[5] = 7


def contradiction(x, y):
    x[7], y[7] = x[6], (y[6] + 1) % 3


def mostly_zero(x, y):
    y[4:] = 0


def in_order(x, y):
    order = np.argsort(y, kind="stable")
    x[:], y[:] = x[order], y[order]


def freeze(net):
    net.fc1.weight.requires_grad = False


def zero(net):
    net.fc2.weight.set_data(ops.zeros_like(net.fc2.weight))


class Stopped(nn.Cell):
    """A layer whose gradient is stopped behind it."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(8, 8)

    def construct(self, x):
        return x + ops.stop_gradient(self.fc(x))


class Mode(ms.train.Callback):
    """Sets the mode of a layer that is in the network before each step, and each evaluated batch."""

    def __init__(self, training, evaluating):
        self.modes = training, evaluating

    def step_begin(self, run_context):
        run_context.original_args().network.norm.set_train(self.modes[0])

    def on_eval_step_begin(self, run_context):
        run_context.original_args().network.norm.set_train(self.modes[1])


class Twice(nn.Cell):
    """One layer that stands at two places."""

    def __init__(self):
        super().__init__()
        self.a = nn.Dense(8, 8)
        self.b = self.a

    def construct(self, x):
        return self.b(self.a(x))


class Logarithm(nn.Cell):
    def construct(self, x):
        return ops.log(x)


class Constant(nn.Cell):
    def construct(self, logits, labels):
        return (logits * 0).sum() + 1.0


def of(**options):
    """Data with a fault."""
    return lambda: dict(train_data=data(**options))


PLANTED = {
    "ds.01": (of(change=nan, shuffle=False), "batch 0, column 0: NaN or infinities in rows 3"),
    "ds.02": (of(change=beyond), "labels reach from 0 to 7, the network has 3 outputs"),
    "ds.02 contradiction": (of(change=contradiction), "equal inputs have the labels"),
    "ds.03": (of(change=mostly_zero), "labels"),
    "dp.01": (of(scale=100), "deviation 100"),
    "dp.02": (lambda: dict(eval_data=data(32, scale=10)), "deviation 1"),
    "dp.03": (of(shuffle=False), "the first batches of two epochs are equal"),
    "dp.03 one epoch": (lambda: of(shuffle=False, change=in_order)() | {"epochs": 1}, "changes 2 times"),
    "hp.01": (lambda: dict(rate=1e-6), "1e-06; the loss falls with rates from"),
    "hp.02": (lambda: dict(rate=5e-3, epochs=5), "the mean loss of the last"),
    "hp.03": (of(batch=50), "46 of 96 rows of an epoch are left out"),
    "api.02": (lambda: dict(callbacks=[Mode(False, False)]), "in evaluation mode while it trains: norm"),
    "api.02 evaluation": (lambda: dict(callbacks=[Mode(True, True)]), "in training mode while it is"),
    "cg.01": (lambda: dict(net=Net(Twice())), "inner.a.weight = inner.b.weight"),
    "cg.02": (lambda: dict(before=freeze), "without gradient: fc1.weight"),
    "cg.02 left out": (
        lambda: dict(given=lambda n: n.fc2.trainable_params()), "not given to the optimizer: fc1.weight",
    ),
    "cg.03": (lambda: dict(net=Net(Stopped())), "unchanged by 36 steps: inner.fc.weight, inner.fc.bias"),
    "cg.04": (lambda: dict(net=Net(softmax=True)), "the network ends in a Softmax"),
    "cg.04 constant": (lambda: dict(loss=Constant()), "the loss is 1 in all 36 steps"),
    "cg.04 nan": (lambda: dict(net=Net(Logarithm())), "the loss of step 1 is"),
    "wi.01": (lambda: dict(before=zero), "all zero at the beginning: fc2.weight"),
    "mp.01": (lambda: dict(net=Net(Logarithm())), "36 of 36 steps are not finite, the first is 1: "),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_is_found(name):
    options, evidence = PLANTED[name]
    result = said(train(**options()), name.split()[0])
    assert result.verdict == "found" and evidence in result.evidence, result


def test_data_and_processing_and_rate_of_a_reference_are_compared(clean):
    reference = clean.summary()
    assert json.loads(json.dumps(reference)) == reference
    other = train(train_data=data(scale=1.5, batch=16), rate=0.05)
    for number, evidence in [
        ("ds.04", "the reference has"), ("ref.01", "step 1 has the loss"), ("ref.02", "columns are"),
        ("ref.03", "0 % of the first rows"), ("ref.04", "batch_size is 16, not 8; learning_rate is"),
    ]:  # fmt: skip
        result = said(other, number, reference)
        assert result.verdict == "found" and evidence in result.evidence, result


def test_rows_that_two_ranks_share_are_found(clean):
    summary = clean.summary() | {"rank": 1}
    result = said(clean, "dp.05", summary)
    assert result.verdict == "found" and result.evidence.startswith("96 rows are in"), result
    assert said(clean, "dp.05", summary | {"rows": ["other"]}).verdict == "not found"


def test_padding_of_tokens_is_found():
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 50, (32, 10)).astype(np.int32)
    padded = tokens.copy()
    padded[:, 2:] = 0
    facts = train()
    for x, verdict in ((tokens, "not found"), (padded, "found")):
        facts.train_batches = [(x, np.zeros(32, np.int32))]
        assert said(facts, "dp.04").verdict == verdict


def test_weights_that_a_checkpoint_does_not_have_are_found(clean):
    net = Net()
    values = {p.name: p for p in net.get_parameters()}
    with collecting() as facts:
        ms.load_param_into_net(net, values)
    assert said(facts, "wi.02").verdict == "not found"
    values["fc9.weight"] = values.pop("fc1.weight")
    with collecting() as facts:
        ms.load_param_into_net(net, values)
    result = said(facts, "wi.02")
    assert result.verdict == "found" and "fc1.weight" in result.evidence and "fc9.weight" in result.evidence


def test_mixed_precision_and_its_loss_scale(clean):
    scaled = train(amp_level="O2", loss_scale_manager=ms.DynamicLossScaleManager(2**10, 2, 100))
    assert said(scaled, "ref.05").verdict == said(scaled, "ref.06").verdict == "not found", scaled.products
    assert said(scaled, "mp.02").verdict == "not found" and scaled.products["float16"], scaled.scales
    bare = train(amp_level="O2", loss_scale_manager=None)
    for number in ("mp.02", "ref.06"):
        assert said(bare, number).verdict == "found"
    assert said(scaled, "mp.01").verdict == "not found"
    high = train(amp_level="O2", loss_scale_manager=ms.DynamicLossScaleManager(2**24, 2, 100))
    result = said(high, "mp.01")  # it comes down
    assert result.verdict == "not found" and "steps are not finite, the first is 1" in result.evidence, result
    scaled.scales = [1024.0, 8.0, 1.0]
    assert said(scaled, "mp.02").evidence == "the scale has fallen from 1024 to 1"
    scaled.products.clear()
    scaled.products["float32"] = 5
    assert said(scaled, "ref.05").verdict == "found"


PENALTY = """
def loss(x):
    inner = lambda x: scaler.scale(net(x))
    g = ms.grad(inner)(x)
    return (g ** 2).sum()
ms.grad(loss)
"""
CLIP = """
def step(g):
    g = ops.clip_by_global_norm(g)
    return scaler.unscale(g)
"""
SOURCES = {  # a fault, the same without it, what is said of the fault
    "api.01": ("nn.BatchNorm2d(3, momentum=0.1)", "nn.BatchNorm2d(3)", "momentum=0.1 of BatchNorm2d"),
    "mp.03": (CLIP, CLIP.replace("scaler.unscale(g)", "g"), "step clips in line 3, unscales in 4"),
    "mp.04": (PENALTY, PENALTY.replace("(g **", "(scaler.unscale(g) **"), "loss takes a gradient in line 4"),
}  # fmt: skip


@pytest.mark.parametrize("number", SOURCES)
def test_what_a_script_says_is_read(number, tmp_path, clean):
    bad, good, evidence = SOURCES[number]
    for text, verdict in ((good, "not found"), (bad, "found")):
        path = tmp_path / "train.py"
        path.write_text(text)
        with collecting(path) as facts:
            pass
        assert said(facts, number).verdict == verdict, text
    assert evidence in said(facts, number).evidence


def test_a_script_without_a_training_needs_you():
    with collecting() as facts:
        pass
    verdicts = {r.check: r.verdict for r in examine(facts)}
    assert verdicts["ds.01"] == verdicts["cg.04"] == "needs you" and verdicts["wi.02"] == "not found"


SCRIPT = """
    import sys
    import numpy as np
    import mindspore as ms
    from mindspore import nn, dataset as ds
    ms.set_seed(int(sys.argv[1]))
    x = np.random.RandomState(0).uniform(-1, 1, (64, 4)).astype(np.float32)
    data = ds.NumpySlicesDataset((x * 300, (x[:, 0] > 0).astype(np.int32)), shuffle=False).batch(16)
    net = nn.Dense(4, 2)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    ms.Model(net, loss, nn.SGD(net.trainable_params(), 0.01)).train(2, data)
"""


def test_the_command_runs_a_script_and_compares_it_with_another_run(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    base = [sys.executable, "-m", "mycelia", "doctor", "--train"]

    def run(*words):
        return subprocess.run([*base, *words], cwd=tmp_path, capture_output=True, text=True)

    done = run("--report", "a.json", "train.py", "1")
    lines = {line[:6].strip(): line for line in done.stdout.splitlines()}
    assert done.returncode == 1 and "  found " in lines["dp.01"], done.stdout + done.stderr
    assert "  found " in lines["dp.03"] and "  not found" in lines["ds.01"] and "needs you" in lines["ref.01"]
    done = run("--json", "--reference", "a.json", "train.py", "2")
    found = {r["check"]: r["verdict"] for r in json.loads(done.stdout)}
    assert (found["ds.04"], found["ref.01"], found["ref.04"]) == ("not found", "found", "not found")
    (tmp_path / "b.json").write_text("[]")
    done = run("--reference", "b.json", "train.py", "2")
    assert done.returncode != 0 and "no report of the doctor" in done.stderr


def test_callbacks_of_plugins_come_after_the_users():
    facts = train(callbacks=[Mode(True, False)], epochs=1)
    assert [type(c).__name__ for c in facts.params.list_callback] == ["Mode", "Collector"]
