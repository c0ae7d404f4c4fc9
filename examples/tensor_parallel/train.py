"""Trains a small transformer whose operators are cut among processes, or in one:

    python examples/tensor_parallel/train.py
    mycelia msrun --worker_num 4 examples/tensor_parallel/train.py --parallel

With 4 processes two share each batch (dp), and two each layer (mp). The losses are the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import nn, ops

VOCABULARY, WIDTH, HEADS, LENGTH, ROWS = 32, 16, 4, 8, 8


class Block(nn.Cell):
    """Attention and a feed forward layer. Heads and hidden features lie over "mp", rows of the batch over
    "dp".
    """

    def __init__(self, dp: int, mp: int):
        super().__init__()
        self.norms = nn.CellList([nn.LayerNorm((WIDTH,)) for _ in range(2)])
        self.query, self.key, self.value = (nn.Dense(WIDTH, WIDTH, has_bias=False) for _ in range(3))
        self.out = nn.Dense(WIDTH, WIDTH)
        self.up, self.down = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)
        self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()
        self.softmax = ops.Softmax()
        for layer in (self.query, self.key, self.value, self.up):  # weights [out, in] are cut by their rows
            layer.matmul.shard(((dp, 1), (mp, 1)))
        self.up.bias_add.shard(((dp, mp), (mp,)))
        for layer in (self.out, self.down):  # by their columns: each process has one operand of a sum
            layer.matmul.shard(((dp, mp), (1, mp)))
        for product in (self.scores, self.mix):
            product.shard(((dp, mp, 1, 1), (dp, mp, 1, 1)))

    def heads(self, x):
        return x.reshape(x.shape[0], LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    def construct(self, x):
        h = self.norms[0](x)
        query, key, value = self.heads(self.query(h)), self.heads(self.key(h)), self.heads(self.value(h))
        weights = self.softmax(self.scores(query, key) * (HEADS / WIDTH) ** 0.5)
        x = x + self.out(self.mix(weights, value).transpose(0, 2, 1, 3).reshape(x.shape))
        return x + self.down(ops.gelu(self.up(self.norms[1](x))))


class Net(nn.Cell):
    """The next token, of tokens in a table that is cut by the vocabulary."""

    def __init__(self, dp: int, mp: int):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, WIDTH)
        grid = ms.Layout((dp, mp), ("dp", "mp"))
        self.table.gather.shard((grid("mp", "None"), grid("dp", "None")))
        self.block, self.head = Block(dp, mp), nn.Dense(WIDTH, VOCABULARY)

    def construct(self, tokens):
        return self.head(self.block(self.table(tokens))).reshape(-1, VOCABULARY)


def main(arguments: list[str] | None = None) -> list[float]:
    """Trains, and returns the losses of the steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--parallel", action="store_true", help="as one of several processes")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path("."))
    given = parser.parse_args(arguments)
    ms.set_context(mode=ms.GRAPH_MODE)
    rank, dp, mp = 0, 1, 1
    if given.parallel:
        ms.communication.init()
        rank, ranks = ms.communication.get_rank(), ms.communication.get_group_size()
        dp, mp = (ranks // 2, 2) if ranks % 2 == 0 else (ranks, 1)
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", dataset_strategy="full_batch",
            strategy_ckpt_config={"save_file": str(given.output / "strategy.ckpt")},
        )  # fmt: skip
    ms.set_seed(1)
    net = Net(dp, mp)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params(), 0.01))
    step.set_train()
    tokens = (
        np.random.default_rng(1).integers(0, VOCABULARY, (given.steps, ROWS, LENGTH + 1)).astype(np.int32)
    )
    losses = []
    for batch in tokens:
        found = step(ms.Tensor(batch[:, :-1]), ms.Tensor(batch[:, 1:].reshape(-1)))
        losses.append(found.asnumpy().item())
    folder = given.output / f"rank_{rank}"
    folder.mkdir(parents=True, exist_ok=True)
    ms.save_checkpoint(step, str(folder / "net.ckpt"), integrated_save=False)
    (folder / "losses.txt").write_text("".join(f"{value!r}\n" for value in losses))
    print(f"loss {losses[0]:.6f} -> {losses[-1]:.6f}")
    return losses


if __name__ == "__main__":
    main()
