"""A small language model in two stages, or by one process on the same micro-batches:

    python examples/pipeline/train.py
    mycelia msrun --worker_num 2 examples/pipeline/train.py --stages 2
    mycelia msrun --worker_num 4 examples/pipeline/train.py --stages 2

It learns to say which letter follows eight others. With four processes each stage has two, which share the
rows of a batch. The table of letters is used by both stages: it is also what the last one reads letters from.
"""

import argparse
from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import dataset as ds
from mycelia import nn, ops
from mycelia.communication import get_group_size, get_rank, init

TEXT = "the cells of a stage are those that say its number, and what they make goes on to the next one. " * 3
LETTERS = sorted(set(TEXT))
LENGTH = 8


class Letters(nn.Cell):
    """Letters [rows, LENGTH] -> what each would be as the next one, [rows, len(LETTERS)]."""

    def __init__(self, width: int = 24):
        super().__init__()
        self.table = nn.Embedding(len(LETTERS), width)
        self.early = nn.SequentialCell(nn.Dense(width * LENGTH, 64), nn.ReLU(), nn.Dense(64, 64), nn.ReLU())
        self.late = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, width))
        self.table.pipeline_stage = self.early.pipeline_stage = 0
        self.late.pipeline_stage = 1

    def construct(self, letters):
        x = self.table(letters).reshape(letters.shape[0], -1)
        return ops.matmul(self.late(self.early(x)), self.table.embedding_table.T)


def rows(shards: int, shard: int, batch: int):
    """Batches of the letters of TEXT, each with the one that follows; those of one shard of the rows."""
    places = np.array([LETTERS.index(letter) for letter in TEXT], np.int32)
    many = len(places) - LENGTH
    given = np.stack([places[i : i + LENGTH] for i in range(many)])
    data = ds.NumpySlicesDataset(
        (given, places[LENGTH:]), ["letters", "next"], shuffle=False, num_shards=shards, shard_id=shard
    )
    return data.batch(batch // shards, drop_remainder=True)


class Losses(ms.train.Callback):
    def __init__(self):
        super().__init__()
        self.values = []

    def on_train_step_end(self, run_context):
        self.values.append(run_context.original_args().net_outputs.asnumpy().item())


def main(arguments=None) -> list[float]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stages", type=int, default=1)
    parser.add_argument("--scheduler", choices=("1f1b", "gpipe"), default="1f1b")
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--output", type=Path, help="a file for the losses, which rank 0 writes")
    options = parser.parse_args(arguments)
    width, place = 1, 0  # of ranks that share the rows of a batch
    if options.stages > 1:
        init()
        width = get_group_size() // options.stages
        place = get_rank() % width
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", pipeline_stages=options.stages, gradients_mean=True,
            pipeline_config={"pipeline_scheduler": options.scheduler, "pipeline_interleave": False},
        )  # fmt: skip
    ms.set_seed(1)  # all processes begin with the same weights
    net = nn.PipelineCell(nn.WithLossCell(Letters(), nn.CrossEntropyLoss()), options.micro_batches)
    optimizer = nn.Adam(net.trainable_params(), 0.005)
    losses = Losses()
    ms.Model(net, optimizer=optimizer).train(options.epochs, rows(width, place, 32), callbacks=[losses])
    print(f"losses {losses.values[0]:.6f} ... {losses.values[-1]:.6f}")
    if options.output is not None and get_rank() == 0:
        options.output.write_text("\n".join(map(repr, losses.values)))
    return losses.values


if __name__ == "__main__":
    main()
