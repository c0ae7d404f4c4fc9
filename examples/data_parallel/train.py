"""LeNet-5 on handwritten digits, by one process or by several that share each batch:

    python examples/data_parallel/train.py
    mycelia msrun --worker_num 2 examples/data_parallel/train.py --parallel

Both take the same steps: what changes is one line, and which rows a process reads.
"""

import argparse
import sys
from pathlib import Path

import mycelia as ms
from mycelia import dataset as ds
from mycelia import nn
from mycelia.communication import get_group_size, get_rank, init
from mycelia.dataset import transforms, vision

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lenet"))
from digits import Place, write_files
from lenet import LeNet5


def digits(folder: Path, usage: str, batch_size: int):
    """Batches of this process: every `get_group_size()`-th digit, from number `get_rank()` on."""
    data = ds.MnistDataset(
        str(folder), usage=usage, shuffle=False, num_shards=get_group_size(), shard_id=get_rank()
    )
    steps = [
        Place(False),
        vision.Rescale(1 / 255, 0.0),
        vision.Normalize([0.1307], [0.3081]),
        vision.HWC2CHW(),
    ]
    data = data.map(steps, input_columns="image").map(transforms.TypeCast(ms.int32), input_columns="label")
    return data.batch(batch_size, drop_remainder=True)


class Losses(ms.train.Callback):
    """The mean over all processes of the loss of each step: that of the whole batch."""

    def __init__(self):
        super().__init__()
        self.values = []

    def on_train_step_end(self, run_context):
        loss = run_context.original_args().net_outputs
        if get_group_size() > 1:
            loss = ms.ops.AllReduce()(loss) / get_group_size()
        self.values.append(loss.asnumpy().item())


def main(arguments=None) -> list[float]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parallel", action="store_true", help="join the processes of the launcher")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=-1, help="of an epoch; -1: all")
    parser.add_argument("--batch", type=int, default=64, help="digits of a step, over all processes")
    parser.add_argument("--output", type=Path, default=Path("data_parallel_output"))
    options = parser.parse_args(arguments)
    if options.parallel:
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    if get_rank() == 0:
        write_files(options.output)
    if options.parallel:
        ms.ops.Barrier()()
    ms.set_seed(1)  # all processes begin with the same weights
    net = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = ms.Model(net, loss, optimizer, metrics={"accuracy"})
    losses = Losses()
    train = digits(options.output, "train", options.batch // get_group_size()).take(options.steps)
    model.train(options.epochs, train, callbacks=[losses])
    found = model.eval(digits(options.output, "test", 50))
    print(f"losses {losses.values[0]:.6f} ... {losses.values[-1]:.6f}, accuracy {found['accuracy']:.4f}")
    if get_rank() == 0:
        (options.output / "losses.txt").write_text("\n".join(map(repr, losses.values)))
    return losses.values


if __name__ == "__main__":
    main()
