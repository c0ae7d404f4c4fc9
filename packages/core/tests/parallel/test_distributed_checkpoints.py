"""Checkpoints of divided networks: strategy files, other numbers of ranks, other layouts, bit for bit."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia.parallel import strategy_files
from mycelia.parallel.engines import threads

sys.path.insert(0, str(Path(__file__).parent))
from test_semi_auto import CASES, Mlp, X, Y, graphs, seeding  # noqa: F401  (a fixture)

ALONE = lambda: Mlp(None, None, None)
MADE = {
    "1": (1, ALONE),
    "2 by columns": (2, CASES["columns, rows"][1]),
    "2 by rows": (2, CASES["rows first"][1]),
    "4, data too": (4, CASES["data and columns"][1]),
    "4 by one axis": (4, CASES["layouts of one axis"][1]),
}
PAIRS = [("1", "2 by columns"), ("2 by columns", "1"), ("2 by columns", "4, data too"),
         ("4, data too", "2 by rows"), ("4 by one axis", "1"), ("2 by rows", "4 by one axis"),
         ("2 by columns", "2 by rows")]  # fmt: skip


def trained(folder, name, steps=2, suffix=""):
    """Trains, and lets each rank write its part, and a strategy file; values of the whole by name."""
    ranks, make = MADE[name]
    strategy = str(folder / f"strategy{suffix or '.ckpt'}")
    ms.reset_auto_parallel_context()
    if ranks > 1:
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", dataset_strategy="full_batch",
            strategy_ckpt_config={"save_file": strategy},
        )  # fmt: skip

    def work(rank):
        step = stepped(make, steps)
        path = folder / f"rank_{rank}"
        path.mkdir(parents=True, exist_ok=True)
        ms.save_checkpoint(step, str(path / "net.ckpt"), integrated_save=False)
        ms.save_checkpoint(step, str(folder / f"whole_{rank}.ckpt"))
        return {p.name: (p.asnumpy(), p.share) for p in step.get_parameters()}

    found = threads.run(ranks, work) if ranks > 1 else [work(0)]
    ms.reset_auto_parallel_context()
    return found, strategy if ranks > 1 else None


def stepped(make, steps):
    with seeding:
        ms.set_seed(1)
        net = make()
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params(), 0.05))
        step.set_train()
    for _ in range(steps):
        step(ms.Tensor(X), ms.Tensor(Y))
    return step


def parts(folder, ranks):
    return [ms.load_checkpoint(next(iter(sorted((folder / f"rank_{r}").glob("*.ckpt")))).as_posix())
            for r in range(ranks)]  # fmt: skip


def joined(files):
    """The whole values of parts that say where they lie."""
    first = files[0]
    return {
        name: value.asnumpy() if value.share is None else value.share.join([f[name].asnumpy() for f in files])
        for name, value in first.items()
    }


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_parts_are_cut_anew_to_the_bit(tmp_path, before, after):
    """Weights and the moments of Adam; what comes back on the way is what was written."""
    source, target, back = tmp_path / "source", tmp_path / "target", tmp_path / "back"
    _, by = trained(source, before)
    _, to = trained(tmp_path / "other", after, steps=1)
    ms.transform_checkpoints(str(source), str(target), "net_", by, to)
    ms.transform_checkpoints(str(target), str(back), "net_", to, by)
    ranks = MADE[after][0]
    assert sorted(p.name for p in target.iterdir()) == [f"rank_{r}" for r in range(ranks)]
    own, there = parts(source, MADE[before][0]), parts(target, ranks)
    like = parts(tmp_path / "other", ranks)
    assert any("moment1" in name for name in own[0])
    for files, others in ((there, like), (parts(back, len(own)), own)):
        for file, other in zip(files, others, strict=True):
            assert {n: (p.shape, p.share) for n, p in file.items()} == {
                n: (p.shape, p.share) for n, p in other.items()
            }
    for name, value in joined(own).items():
        np.testing.assert_array_equal(joined(there)[name], value)
    for file, other in zip(parts(back, len(own)), own):
        assert all(np.array_equal(file[name].asnumpy(), p.asnumpy()) for name, p in other.items())


def test_training_goes_on_with_another_layout(tmp_path):
    """Two steps on two ranks and two on four are four of one process."""
    _, by = trained(tmp_path / "source", "2 by columns")
    expected = stepped(ALONE, 4)
    _, to = trained(tmp_path / "other", "4, data too", steps=1)
    ms.transform_checkpoints(str(tmp_path / "source"), str(tmp_path / "target"), "net_", by, to)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")

    def work(rank):
        step = stepped(MADE["4, data too"][1], 1)
        ms.load_checkpoint(
            str(tmp_path / "target" / f"rank_{rank}" / f"net_{rank}.ckpt"), step, strict_load=True
        )
        for _ in range(2):
            step(ms.Tensor(X), ms.Tensor(Y))
        path = str(tmp_path / f"end_{rank}.ckpt")
        ms.save_checkpoint(step, path)
        return ms.load_checkpoint(path)

    for found in threads.run(4, work):
        for parameter in expected.get_parameters():
            np.testing.assert_allclose(
                found[parameter.name].asnumpy(),
                parameter.asnumpy(),
                rtol=1e-4,
                atol=2e-6,
                err_msg=parameter.name,
            )


def test_whole_files_are_read_by_any_number_of_ranks(tmp_path):
    found, by = trained(tmp_path, "2 by columns")
    whole = ms.load_checkpoint(str(tmp_path / "whole_0.ckpt"))
    for name, value in joined(parts(tmp_path, 2)).items():
        np.testing.assert_array_equal(whole[name].asnumpy(), value)
    step = stepped(ALONE, 0)
    assert ms.load_distributed_checkpoint(
        step, [str(tmp_path / f"rank_{r}" / "net.ckpt") for r in (0, 1)], train_strategy_filename=by
    )
    for parameter in step.get_parameters():
        np.testing.assert_array_equal(parameter.asnumpy(), whole[parameter.name].asnumpy())


def test_parts_of_another_training_are_refused(tmp_path):
    """By one process, by ranks of another layout whose parts have the same shape, and without a strategy."""
    _, by = trained(tmp_path, "2 by columns")
    first = str(tmp_path / "rank_0" / "net.ckpt")
    with pytest.raises(RuntimeError, match="has all of .* has the part .*rank 0 of 2: transform_checkpoints"):
        ms.load_checkpoint(first, stepped(ALONE, 0))
    with pytest.raises(ValueError, match="parts of .* which the source strategy does not name"):
        ms.transform_checkpoint_by_rank(0, {0: first}, str(tmp_path / "x.ckpt"))
    with pytest.raises(ValueError, match=r"needs the checkpoints of the ranks \[0, 1\].*none of \[1\]"):
        (tmp_path / "rank_1" / "net.ckpt").unlink()
        ms.transform_checkpoints(str(tmp_path), str(tmp_path / "to"), "n", by)
    with pytest.raises(ValueError, match=r"'rank_0'|is the part of rank 0 at"):
        ms.transform_checkpoint_by_rank(0, {0: first, 1: first}, str(tmp_path / "x.ckpt"), by)


def test_strategy_files_of_both_formats_say_the_same(tmp_path):
    _, by = trained(tmp_path / "a", "4, data too")
    _, text = trained(tmp_path / "b", "4, data too", suffix=".json")
    found = strategy_files.read(by, "test")
    assert found == strategy_files.read(text, "test")
    weights = {name: share for name, share in found.items() if name.endswith("w1")}
    assert {tuple(strategy_files.places_of(s)[1]) for s in weights.values()} == {
        (0,)
    }  # columns, by neighbours
    assert len(weights) == 3  # the weight and its moments
    told = json.loads(Path(text).read_text())
    name = next(name for name in weights if "moment" not in name)
    row = told["parallel_layout_item"][name]
    assert (row["dev_matrix"], row["tensor_map"], row["field"]) == ([2, 2], [-1, 0], 0)
    operators = {
        n.rpartition("/")[2]: item["parallel_strategy"] for n, item in told["parallel_strategy_item"].items()
    }
    assert operators["MatMul-op0"] == [[2, 1], [1, 2]]
    message = ms.build_searched_strategy(by)[name]
    assert list(message.dev_matrix[0].dim) == [2, 2] and list(message.tensor_map[0].dim) == [-1, 0]


def test_ranks_that_a_rank_needs(tmp_path):
    _, columns = trained(tmp_path / "a", "2 by columns")
    _, four = trained(tmp_path / "b", "4, data too")
    assert ms.rank_list_for_transform(0) == [0]
    assert ms.rank_list_for_transform(1, None, four) == [0]
    assert ms.rank_list_for_transform(0, columns) == [1, 0]
    assert ms.rank_list_for_transform(3, columns, four) == [1]
    assert ms.rank_list_for_transform(1, four, columns) == [1]
    with pytest.raises(ValueError, match="below the 4 ranks"):
        ms.rank_list_for_transform(4, columns, four)
    with pytest.raises(TypeError, match="rank_id must be an int"):
        ms.rank_list_for_transform("0")
    with pytest.raises(ValueError, match="no strategy file"):
        ms.rank_list_for_transform(0, str(tmp_path / "none.ckpt"))
    (tmp_path / "bad.ckpt").write_bytes(b"\x0a\xff\xff")
    with pytest.raises(ValueError, match="is no strategy file"):
        ms.rank_list_for_transform(0, str(tmp_path / "bad.ckpt"))


def test_parts_are_merged_by_a_strategy(tmp_path):
    found, by = trained(tmp_path, "4, data too")
    strategy = ms.build_searched_strategy(by)
    whole = ms.load_checkpoint(str(tmp_path / "whole_0.ckpt"))
    for name in strategy:
        given = [ms.Parameter(ms.Tensor(rank[name][0]), name) for rank in found]
        if given[0].ndim:
            np.testing.assert_array_equal(
                ms.merge_sliced_parameter(given, strategy).asnumpy(), whole[name].asnumpy()
            )
    with pytest.raises(ValueError, match="4 ranks .* but 3 parts"):
        name = next(n for n in strategy if n.endswith("w1"))
        ms.merge_sliced_parameter([ms.Parameter(ms.Tensor(r[name][0]), name) for r in found[:3]], strategy)
