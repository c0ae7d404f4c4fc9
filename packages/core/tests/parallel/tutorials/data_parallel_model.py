"""Data parallel by Model.train, with callbacks; rank 0 keeps a checkpoint, which all read back."""

import os
import sys

import mindspore as ms
from data import create_dataset
from mindspore import nn, train
from mindspore.communication import get_group_size, get_rank, init

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_auto_parallel_context(
    device_num=get_group_size(), parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True,
    parameter_broadcast=True,
)  # fmt: skip
ms.set_seed(1)

net = nn.SequentialCell(nn.Flatten(), nn.Dense(28 * 28, 32), nn.ReLU(), nn.Dense(32, 10))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
opt = nn.Momentum(net.trainable_params(), 0.01, 0.9)
model = train.Model(net, loss, opt, metrics={"accuracy": nn.Accuracy()})
dataset = create_dataset(32 // get_group_size(), num_shards=get_group_size(), shard_id=get_rank())
callbacks = [train.LossMonitor(1)]
if get_rank() == 0:
    config = train.CheckpointConfig(save_checkpoint_steps=dataset.get_dataset_size(), keep_checkpoint_max=1)
    callbacks.append(train.ModelCheckpoint("mlp", os.path.join(sys.argv[1], "ckpt"), config))
model.train(1, dataset, callbacks=callbacks, dataset_sink_mode=True)

ms.communication.comm_func.barrier()
other = nn.SequentialCell(nn.Flatten(), nn.Dense(28 * 28, 32), nn.ReLU(), nn.Dense(32, 10))
name = next(n for n in os.listdir(os.path.join(sys.argv[1], "ckpt")) if n.endswith(".ckpt"))
not_loaded, _ = ms.load_param_into_net(other, ms.load_checkpoint(os.path.join(sys.argv[1], "ckpt", name)))
same = all((a.asnumpy() == b.asnumpy()).all() for a, b in zip(net.get_parameters(), other.get_parameters()))
print("not loaded", not_loaded, "same", same)
print("accuracy", model.eval(create_dataset(64))["accuracy"])
