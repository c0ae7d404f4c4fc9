"""Training that was interrupted goes on as if it had not been: the same losses and weights, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia import nn, train

X = np.sin(np.arange(96, dtype=np.float32)).reshape(24, 4)
Y = X[:, :2] * X[:, 2:]

OPTIMIZERS = {
    "Momentum": lambda p: nn.Momentum(p, nn.CosineDecayLR(0.001, 0.1, 24), 0.9, weight_decay=0.01),
    "Adam": lambda p: nn.Adam(p, nn.ExponentialDecayLR(0.01, 0.9, 4), use_amsgrad=True),
    "rates of the steps": lambda p: nn.SGD(p, [0.1 / (i + 1) for i in range(24)], momentum=0.5),
    "RMSProp": lambda p: nn.RMSProp(p, 0.01, momentum=0.5, centered=True),
    "Lamb": lambda p: nn.Lamb(p, 0.01),
}


class Losses(train.Callback):
    def __init__(self):
        super().__init__()
        self.values = []

    def on_train_step_end(self, run_context):
        results = run_context.original_args().net_outputs
        results = results if isinstance(results, tuple) else (results,)
        self.values.append([r.asnumpy().tobytes() for r in results])


def build(optimizer, scaled, seed):
    ms.set_seed(seed)
    net = nn.SequentialCell(nn.Dense(4, 8), nn.BatchNorm1d(8), nn.Dropout(p=0.3), nn.Dense(8, 2))
    manager = ms.DynamicLossScaleManager(2**10, 2, 5) if scaled else None
    options = (
        {"loss_scale_manager": manager, "amp_level": "O2", "keep_batchnorm_fp32": True} if scaled else {}
    )
    return train.Model(net, nn.MSELoss(), optimizer(net.trainable_params()), **options)


def pictures():
    data = ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=True)
    return data.shuffle(7).map(lambda x: x + np.float32(0.25), ["x"]).batch(4)


def run(model, epochs, **options):
    losses = Losses()
    model.train(epochs, pictures(), callbacks=[losses, *options.pop("callbacks", ())], **options)
    return losses.values, [p.asnumpy().tobytes() for p in model.train_network.get_parameters()]


@pytest.mark.parametrize("scaled", [False, True], ids=["", "loss scale"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_bit_by_bit(tmp_path, name, scaled):
    config = train.CheckpointConfig(
        save_checkpoint_steps=6, keep_checkpoint_max=9,
        append_info=["epoch_num", {"random": ms.default_generator}],
    )  # fmt: skip
    whole = build(OPTIMIZERS[name], scaled, 5)
    losses, weights = run(whole, 4, callbacks=[train.ModelCheckpoint("net", str(tmp_path), config)])

    saved = ms.load_checkpoint(str(tmp_path / "net-2_6.ckpt"))
    later = build(OPTIMIZERS[name], scaled, 6)
    ms.set_seed(5)  # orders of the dataset follow from it
    ms.default_generator.set_state(saved.pop("random"))
    done = int(saved.pop("epoch_num").asnumpy())
    assert ms.load_param_into_net(later.train_network, saved, strict_load=True) == ([], [])
    assert run(later, 4, initial_epoch=done) == (losses[12:], weights)


def test_each_epoch_has_an_order_of_its_own():
    seen = []
    note = train.LambdaCallback(
        on_train_step_begin=lambda c: seen.append(c.original_args().train_dataset_element[0].asnumpy())
    )
    run(build(OPTIMIZERS["Momentum"], False, 1), 2, callbacks=[note])
    first, second = np.concatenate(seen[:6]), np.concatenate(seen[6:])
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(np.sort(first, axis=0), np.sort(second, axis=0))
