"""What editors must know of Mycelia; run in the editable environment and from wheels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from editor_tools import Jedi, Pyright, check

TYPING = Path(__file__).resolve().parent / "typing"
START = """
import mycelia as ms
import mycelia.dataset.vision as vision
from mycelia.mint.nn import functional as F
x = ms.Tensor([1.0])
rows = ms.dataset.GeneratorDataset([1], ["a"])
"""
COMPLETIONS = {
    "ms.": "Tensor nn ops mint numpy set_context float32 Model jit save_checkpoint",
    "ms.nn.": "Dense Cell Conv2d Adam ReLU SoftmaxCrossEntropyWithLogits",
    "ms.ops.": "relu add concat softmax ReLU Conv2D grad vmap",
    "ms.mint.": "add matmul nn optim linalg",
    "ms.mint.nn.": "Linear Conv2d ReLU Mish functional",
    "ms.mint.optim.": "AdamW SGD",
    "F.": "relu gelu mse_loss conv2d",
    "ms.numpy.": "cumsum arange matmul",
    "ms.scipy.linalg.": "solve_triangular eigh",
    "ms.dataset.": "NumpySlicesDataset GeneratorDataset MindDataset vision",
    "vision.": "Resize Decode Normalize",
    "ms.experimental.optim.": "Adam SGD lr_scheduler",
    "ms.amp.": "auto_mixed_precision DynamicLossScaler",
    "rows.": "batch map shuffle create_tuple_iterator save get_dataset_size",
    "rows.batch(3).": "batch padded_batch take zip",
    "x.": "reshape asnumpy dtype shape sum astype T",
    "ms.Tensor([1]).": "reshape asnumpy sum",
    "(x + 1).": "reshape sum",
    "ms.ops.relu(x).": "reshape sum",
    "F.gelu(x).": "reshape sum",
    "ms.float32.": "itemsize name",
    "from mycelia.train import M": "Model",
    "from mycelia.train.callback import L": "LossMonitor",
    "from mycelia.common.initializer import N": "Normal",
}
PARAMETERS = {
    "ms.nn.Dense(": [
        "in_channels", "out_channels", "weight_init", "bias_init", "has_bias", "activation", "dtype",
    ],
    "ms.ops.relu(": ["input", "inplace"],
    "ms.ops.add(": ["input", "other"],
    "ms.ops.Conv2D(": [
        "out_channel", "kernel_size", "mode", "pad_mode", "pad", "stride", "dilation", "group", "data_format",
    ],
    "ms.Tensor(": ["input_data", "dtype", "shape", "init"],
    "ms.mint.nn.Linear(": ["in_features", "out_features", "bias", "weight_init", "bias_init", "dtype"],
    "ms.mint.nn.NLLLoss(": ["weight", "ignore_index", "reduction"],
    "x.clamp(": ["min", "max"],
    "rows.shuffle(4).take(": ["count"],
}  # fmt: skip


@pytest.fixture(scope="module", params=[Jedi, Pyright], ids=["jedi", "pyright"])
def editor(request, tmp_path_factory):
    found = request.param(tmp_path_factory.mktemp("scripts"))
    yield found
    found.close()


@pytest.mark.parametrize("code", COMPLETIONS)
def test_names_are_completed(editor, code):
    assert set(COMPLETIONS[code].split()) - editor.complete(START + code) == set()


@pytest.mark.parametrize("code", PARAMETERS)
def test_parameters_are_shown(editor, code):
    assert editor.parameters(START + code) == PARAMETERS[code]


def test_the_first_paragraph_of_a_docstring_is_shown(editor):
    assert "Rectified linear unit" in editor.documentation(START + "ms.ops.relu(")
    assert "activation" in editor.documentation(START + "ms.nn.Dense(")


def test_the_checker_finds_nothing_in_a_right_script(tmp_path):
    (tmp_path / "right.py").write_text((TYPING / "right.py").read_text())
    assert check(tmp_path, "right.py") == []


def test_the_checker_finds_each_fault(tmp_path):
    text = (TYPING / "wrong.py").read_text()
    (tmp_path / "wrong.py").write_text(text)
    found = {(d["range"]["start"]["line"], d["rule"]) for d in check(tmp_path, "wrong.py")}
    marks = (re.search(r"# (report\w+)$", line) for line in text.split("\n"))
    assert found == {(number, mark[1]) for number, mark in enumerate(marks) if mark}
