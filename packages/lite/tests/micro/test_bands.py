"""A limit of memory: first layers go in bands of rows, and what does not fit is told."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.format import Table, write
from mycelia_lite.micro import generate

from .c_projects import compiled, run

SIZE, CHANNELS = 24, 8


def tensor(name, shape, data=None):
    made = Table("Tensor", name=name, dataType="FLOAT32", dims=list(shape), format="NHWC")
    if data is not None:
        made.data = np.asarray(data, np.float32).tobytes()
    return made


def network(path) -> str:
    """An image of 24 x 24 through convolutions and a pool: the largest values lie in the middle."""
    chance = np.random.default_rng(3)
    tensors, nodes = [tensor("x", (1, SIZE, SIZE, 3))], []

    def node(name, primitive, shape, *weights):
        for w in weights:
            tensors.append(tensor(f"{name}_w", w.shape, w))
        made = Table("CNode", name=name, primitive=primitive)
        last = nodes[-1].outputIndex[0] if nodes else 0
        made.inputIndex = [last, *range(len(tensors) - len(weights), len(tensors))]
        made.outputIndex = [len(tensors)]
        tensors.append(tensor(name, shape))
        nodes.append(made)

    def conv(**attributes):
        return Table("Conv2DFusion", kernel_size=[3, 3], **attributes)

    half = SIZE // 2
    node(
        "first",
        conv(stride=[1, 1], pad_mode="PAD", pad_list=[1, 1, 1, 1], activation_type="RELU"),
        (1, SIZE, SIZE, CHANNELS),
        chance.standard_normal((CHANNELS, 3, 3, 3)),
        np.arange(CHANNELS),
    )
    node("curve", Table("Activation", activation_type="SIGMOID"), (1, SIZE, SIZE, CHANNELS))
    node(
        "deep",
        conv(stride=[1, 1], pad_mode="PAD", pad_list=[1, 1, 1, 1], group=CHANNELS),
        (1, SIZE, SIZE, CHANNELS),
        chance.standard_normal((CHANNELS, 3, 3, 1)),
    )
    node(
        "pool",
        Table("AvgPoolFusion", kernel_size=[3, 3], strides=[2, 2], pad_mode="SAME"),
        (1, half, half, CHANNELS),
    )
    node("last", conv(stride=[2, 2], pad_mode="VALID", dilation=[2, 2]), (1, 4, 4, 2),
         chance.standard_normal((2, 3, 3, CHANNELS)))  # fmt: skip
    write(
        path,
        Table("MetaGraph", nodes=nodes, allTensors=tensors, inputIndex=[0], outputIndex=[len(tensors) - 1]),
    )
    return str(path)


@pytest.mark.parametrize("limit", [16000, 14000, 12500])
def test_bands_give_the_runtimes_answers_within_the_limit(tmp_path, limit):
    path = network(tmp_path / "net.ms")
    (whole,) = generate(path, tmp_path / "whole")
    (report,) = generate(path, tmp_path / "bands", ram_limit=limit)
    assert whole.arena_bytes > 18000 and report.arena_bytes <= limit
    (line,) = run(compiled(tmp_path / "bands"))
    assert line.endswith("PASSED")
    text = (tmp_path / "bands/src/model0/net0.c").read_text()
    assert text.count("micro_depthwise_f32(") > 1


def test_a_limit_that_the_model_keeps_changes_nothing(tmp_path):
    path = network(tmp_path / "net.ms")
    (whole,) = generate(path, tmp_path / "whole")
    (report,) = generate(path, tmp_path / "same", ram_limit=whole.arena_bytes)
    assert report == whole


def test_what_does_not_fit_is_told_with_what_lies_in_memory(tmp_path):
    path = network(tmp_path / "net.ms")
    value = r"float32\[1, 24, 24, 3\] of [\d,]+ bytes"  # bands leave the image as it is
    pattern = (
        rf"the arena takes 1\d,\d+ bytes, [\d,]+ more than the limit of 2,000: when node '\w+' .* {value}"
    )
    with pytest.raises(ValueError, match=pattern):
        generate(path, tmp_path / "net", ram_limit=2000)
    assert not (tmp_path / "net").exists()
    with pytest.raises(TypeError, match="ram_limit must be a number of bytes or None, but is '2k'"):
        generate(path, tmp_path / "net", ram_limit="2k")


def test_images_that_come_with_the_channels_first_go_in_bands(tmp_path, lenet):
    mslite.Converter().convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "lenet"))
    shape = {"x": [1, 1, 32, 32]}
    (whole,) = generate(tmp_path / "lenet.ms", tmp_path / "whole", shape)
    (report,) = generate(
        tmp_path / "lenet.ms", tmp_path / "bands", shape, ram_limit=whole.arena_bytes * 2 // 3
    )
    assert report.arena_bytes <= whole.arena_bytes * 2 // 3
    assert run(compiled(tmp_path / "bands"))[0].endswith("PASSED")
