"""The rules of optimise/layers.py, which `optimizeTransformer` asks for, and where they fire not."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn
from mycelia_lite.converter import convert
from mycelia_lite.format import read

from .small_models import answers

WIDTH, HEADS, DEPTH = 12, 3, 2
ENCODER, DECODER = "EncoderLayerFusion", "DecoderLayerFusion"


class Stack(nn.Cell):
    """Layers with normalizations behind or in front (`first`) of their parts; `cross`: on other rows, too."""

    def __init__(self, first, cross, inner=False):
        super().__init__()
        kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
        how = dict(dropout=0.0, batch_first=True, norm_first=first)
        self.layers = nn.CellList([kind(WIDTH, HEADS, 2 * WIDTH, **how) for _ in range(DEPTH)])
        self.cross, self.inner = cross, inner

    def construct(self, x, rows):
        for layer in self.layers:
            before = x
            x = layer(x, rows) if self.cross else layer(x)
        if not self.inner:
            return x
        return x, self.layers[-1].self_attn(before, before, before)[0]


def made(folder, network, **options):
    """The report, the file and its answers to two inputs."""
    ms.set_seed(3)
    random = np.random.default_rng(5)
    x, rows = (random.normal(size=(2, n, WIDTH)).astype(np.float32) for n in (4, 5))
    source = str(folder / "net.mindir")
    ms.export(network.set_train(False), ms.Tensor(x), ms.Tensor(rows), file_name=source, file_format="MINDIR")
    report = convert(mslite.FmkType.MINDIR, source, str(folder / "net"), **options)
    model = read(report.path).copy()
    given = (x, rows)[: len(model.inputIndex)]
    return report, model, answers(model, *given)


@pytest.mark.parametrize("first", [False, True], ids=["norms behind", "norms in front"])
@pytest.mark.parametrize(("rule", "cross"), [(ENCODER, False), (DECODER, True)])
def test_each_layer_is_a_subgraph_that_is_called(tmp_path, rule, cross, first):
    network = Stack(first, cross)
    plain, before, expected = made(tmp_path, network)
    report, after, found = made(tmp_path, network, optimize_transformer=True)
    assert not plain.fusions.get(rule) and len(before.subGraph) == 1
    assert report.fusions[rule] == DEPTH and len(after.subGraph) == 1 + DEPTH
    main = [after.nodes[int(i)].primitive.kind for i in after.subGraph[0].nodeIndices]
    assert main.count("Call") == main.count("PartialFusion") == DEPTH
    assert not {"Custom", "LayerNormFusion", "Softmax"} & set(main)
    assert [s.name.partition("_")[0] for s in after.subGraph[1:]] == [rule[:7].lower()] * DEPTH
    for y, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, want, atol=1e-5)


def test_a_layer_stays_where_its_rule_is_left_out(tmp_path):
    network = Stack(False, False)
    report, after, _ = made(tmp_path, network, optimize_transformer=True, without_fusions=(ENCODER,))
    assert not report.fusions.get(ENCODER) and len(after.subGraph) == 1
    attention = "MultiHeadAttentionFusion"
    report, after, _ = made(tmp_path, network, optimize_transformer=True, without_fusions=(attention,))
    assert not report.fusions.get(ENCODER) and len(after.subGraph) == 1


def test_a_layer_of_which_something_else_reads_a_part_stays(tmp_path):
    network = Stack(False, False, inner=True)
    report, after, found = made(tmp_path, network, optimize_transformer=True)
    assert report.fusions[ENCODER] == DEPTH - 1 and len(after.subGraph) == DEPTH
    expected = made(tmp_path, network)[2]
    for y, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, want, atol=1e-5)
