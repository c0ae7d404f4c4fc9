"""`enable_parallel_optimizer` where graphs are divided: what ranks would keep alike is divided besides."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn
from mycelia.parallel.engines import threads

sys.path.insert(0, str(Path(__file__).parent))
from test_semi_auto import CASES, HIDDEN, WIDTH, Mlp, X, Y, graphs, seeding, train, whole  # noqa: F401  (a fixture)
from test_semi_auto_images import scaled

LAYOUTS = ("columns, rows", "data and columns", "layouts", "layouts of one axis")
OPTIMIZERS = {
    "Adam": lambda p: nn.Adam(p, 0.05, weight_decay=0.01),
    "Momentum": lambda p: nn.Momentum(p, 0.05, 0.9),
    "mint": lambda p: ms.mint.optim.AdamW(p, 0.05),
}


def settings(level="level1", mode="semi_auto_parallel", **more):
    config = {"parallel_optimizer_threshold": 0, "optimizer_level": level, **more}
    search = {"search_mode": "sharding_propagation"} if mode == "auto_parallel" else {}
    ms.set_auto_parallel_context(
        parallel_mode=mode, dataset_strategy="full_batch", enable_parallel_optimizer=True,
        parallel_optimizer_config=config, **search,
    )  # fmt: skip


def sizes(step):
    """Elements that this rank keeps of each Parameter and state."""
    return {p.name: int(np.prod(p.shape)) for p in step.get_parameters()}


@pytest.mark.parametrize("level", ("level1", "level3"))
@pytest.mark.parametrize("name", LAYOUTS)
def test_training_is_that_of_one_process(name, level):
    ranks, make, _ = CASES[name]
    expected, weights, _ = train(lambda: Mlp(None, None, None), X)
    settings(level)
    for losses, own, _ in threads.run(ranks, lambda rank: train(make, X)):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        for key, value in weights.items():
            np.testing.assert_allclose(own[key], value, rtol=1e-4, atol=2e-6, err_msg=key)


@pytest.mark.parametrize("level", ("level1", "level3"))
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_optimizers(kind, level):
    ranks, make, _ = CASES["data and columns"]
    expected, weights, _ = train(lambda: Mlp(None, None, None), X, optimizer=OPTIMIZERS[kind])
    settings(level)
    for losses, own, _ in threads.run(ranks, lambda rank: train(make, X, optimizer=OPTIMIZERS[kind])):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        for key, value in weights.items():
            np.testing.assert_allclose(own[key], value, rtol=1e-4, atol=2e-6, err_msg=key)


def stepped(make, steps=1):
    with seeding:
        ms.set_seed(1)
        net = make()
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params(), 0.05))
        step.set_train()
    for _ in range(steps):
        step(Tensor(X), Tensor(Y))
    return step


@pytest.mark.parametrize(
    ("level", "threshold", "weight", "moment"),
    [
        # w1 [8, 16] is cut by columns among 2 of 4 ranks, and what 2 would keep alike among these
        ("level1", 0, WIDTH * HIDDEN // 2, WIDTH * HIDDEN // 4),
        ("level3", 0, WIDTH * HIDDEN // 4, WIDTH * HIDDEN // 4),
        ("level3", 64, WIDTH * HIDDEN // 2, WIDTH * HIDDEN // 2),  # smaller than 64 KB
    ],
)
def test_what_each_rank_keeps(level, threshold, weight, moment):
    ranks, make, _ = CASES["data and columns"]
    settings(level, parallel_optimizer_threshold=threshold)
    for kept in threads.run(ranks, lambda rank: sizes(stepped(make))):
        moments = [n for name, n in kept.items() if "moment" in name and name.endswith("w1")]
        assert moments == [moment] * 2
        assert [n for name, n in kept.items() if "moment" not in name and name.endswith("w1")] == [weight]


def test_networks_without_layouts_divide_states_among_all():
    settings(mode="auto_parallel")
    for kept in threads.run(4, lambda rank: sizes(stepped(lambda: Mlp(None, None, None)))):
        moments = {n for name, n in kept.items() if "moment" in name and name.endswith("w1")}
        assert moments == {WIDTH * HIDDEN // 4}


@pytest.mark.parametrize("level", ("level1", "level3"))
def test_other_graphs_and_files_see_the_same_weights(level, tmp_path):
    """An evaluation before and after training, of other sizes; whole files; files of parts."""
    ranks, make, _ = CASES["data and columns"]
    expected = stepped(lambda: Mlp(None, None, None), 2)
    settings(level)

    def work(rank):
        step = stepped(make, 0)
        evaluate = ms.jit(lambda x: step.network._backbone(x))
        evaluate(Tensor(X[:4]))
        for _ in range(2):
            step(Tensor(X), Tensor(Y))
        found = evaluate(Tensor(X[:2])).asnumpy()
        ms.save_checkpoint(step, str(tmp_path / f"whole_{rank}.ckpt"))
        folder = tmp_path / f"rank_{rank}"
        folder.mkdir()
        ms.save_checkpoint(step, str(folder / "net.ckpt"), integrated_save=False)
        again = stepped(make, 1)
        ms.load_checkpoint(str(folder / "net.ckpt"), again, strict_load=True)
        return found, {p.name: whole(p) for p in step.get_parameters()}, {
            p.name: whole(p) for p in again.get_parameters()
        }  # fmt: skip

    for found, own, again in threads.run(ranks, work):
        file = ms.load_checkpoint(str(tmp_path / "whole_0.ckpt"))
        for p in expected.get_parameters():
            np.testing.assert_allclose(own[p.name], p.asnumpy(), rtol=1e-4, atol=2e-6, err_msg=p.name)
            np.testing.assert_array_equal(file[p.name].asnumpy(), own[p.name])
            np.testing.assert_array_equal(again[p.name], own[p.name])
        ms.reset_auto_parallel_context()
        alone = expected.network._backbone(Tensor(X[:2])).asnumpy()
        np.testing.assert_allclose(found, alone, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("level", ("level1", "level3"))
def test_steps_in_a_branch(level):
    """A loss scale leaves steps out."""
    ranks, make, _ = CASES["data and columns"]
    expected, weights = scaled(lambda: Mlp(None, None, None), 3e38)
    settings(level)
    for told, own in threads.run(ranks, lambda rank: scaled(make, 3e38)):
        np.testing.assert_allclose(told, expected, rtol=1e-5)
        for key, value in weights.items():
            np.testing.assert_allclose(own[key], value, rtol=1e-4, atol=2e-6, err_msg=key)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"optimizer_level": "level2"}, "gradients of divided graphs are whole until"),
        ({"gradient_accumulation_shard": True}, "gradients of micro-batches in parts"),
    ],
)
def test_what_is_not_there_is_refused(more, words):
    settings(**more)
    with pytest.raises(NotImplementedError, match=words):
        threads.run(2, lambda rank: stepped(lambda: Mlp(None, None, None)))


def test_groups_of_ranks_are_refused():
    settings()
    ms.set_auto_parallel_context(optimizer_weight_shard_size=2)
    with pytest.raises(NotImplementedError, match="optimizer_weight_shard_size=2"):
        threads.run(4, lambda rank: stepped(lambda: Mlp(None, None, None)))


def test_steps_that_need_whole_weights_are_refused_by_name():
    settings()

    def work(rank):
        return train(lambda: Mlp(None, None, None), X, optimizer=lambda p: nn.Lamb(p, 0.01))

    with pytest.raises(NotImplementedError, match="lamb.*no rule says how lamb works on divided tensors"):
        threads.run(2, work)
