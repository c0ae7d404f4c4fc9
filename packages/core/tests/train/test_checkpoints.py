"""`ModelCheckpoint`, `CheckpointConfig` and `BackupAndRestore`: names, what is kept, what is inside."""

from __future__ import annotations

import os

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, train
from mycelia import dataset as ds
from mycelia.train.callbacks import BackupAndRestore
from mycelia.train.summary.graph import graph_message, graph_of

X = np.arange(24, dtype=np.float32).reshape(12, 2) / 10
Y = (X @ np.array([[1.0], [2.0]], np.float32)).astype(np.float32)


def data(batch=4):
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(batch)


def model():
    net = nn.Dense(2, 1, weight_init=Tensor(np.array([[0.1, 0.2]], np.float32)), bias_init="zeros")
    return train.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9), metrics={"loss"})


def saved(directory, epochs=3, prefix="a", **config):
    model().train(
        epochs,
        data(),
        callbacks=[train.ModelCheckpoint(prefix, str(directory), train.CheckpointConfig(**config))],
    )
    return sorted(os.listdir(directory))


def test_files_are_named_by_epoch_and_step_and_the_oldest_go(tmp_path):
    assert saved(tmp_path, save_checkpoint_steps=2, keep_checkpoint_max=3) == [
        "a-2_3.ckpt",
        "a-3_2.ckpt",
        "a-3_3.ckpt",
    ]


def test_the_last_step_is_always_saved(tmp_path):
    assert saved(tmp_path, 1, save_checkpoint_steps=100) == ["a-1_3.ckpt"]


def test_a_compiled_training_leaves_its_graph(tmp_path):
    with ms.config.context(mode=ms.GRAPH_MODE):
        assert saved(tmp_path / "one", 1, save_checkpoint_steps=9) == ["a-1_3.ckpt", "a-graph.meta"]
        m = model()
        named = train.ModelCheckpoint(lambda p: f"n{p.cur_step_num}", lambda p: str(tmp_path / "two"))
        m.train(1, data(), callbacks=[named])
    assert sorted(os.listdir(tmp_path / "two")) == ["n1-graph.meta", "n1.ckpt", "n2.ckpt", "n3.ckpt"]
    version, content = (tmp_path / "two" / "n1-graph.meta").read_bytes().split(b"\x22", 1)
    graph = graph_message(graph_of(m.train_network))
    assert version == b"\x08\x01"  # a ModelProto
    assert content.endswith(graph) and len(content) - len(graph) <= 3


def test_a_prefix_that_is_taken_gets_a_number(tmp_path):
    saved(tmp_path, 1, save_checkpoint_steps=3)
    saved(tmp_path, 1, save_checkpoint_steps=3)
    assert saved(tmp_path, 1, save_checkpoint_steps=3) == ["a-1_3.ckpt", "a_1-1_3.ckpt", "a_2-1_3.ckpt"]
    assert saved(tmp_path, 1, "ab", save_checkpoint_steps=3)[0] == "a-1_3.ckpt"  # another prefix, no number
    assert "ab-1_3.ckpt" in os.listdir(tmp_path)


def test_neither_keep_policy_keeps_one_file(tmp_path):
    assert saved(tmp_path, save_checkpoint_steps=1, keep_checkpoint_max=0) == ["a-3_3.ckpt"]


def test_within_a_window_of_minutes_the_newest_stays(tmp_path):
    assert saved(
        tmp_path, save_checkpoint_steps=3, keep_checkpoint_max=0, keep_checkpoint_per_n_minutes=10
    ) == ["a-3_3.ckpt"]


def test_steps_win_over_seconds_and_max_over_minutes():
    config = train.CheckpointConfig(5, 10, 3, 7)
    policy = config.get_checkpoint_policy()
    assert (policy["save_checkpoint_steps"], policy["save_checkpoint_seconds"]) == (5, None)
    assert (policy["keep_checkpoint_max"], policy["keep_checkpoint_per_n_minutes"]) == (3, None)


def test_prefix_and_directory_may_be_functions(tmp_path):
    callback = train.ModelCheckpoint(
        lambda p: f"net{p.epoch_num}",
        lambda p: str(tmp_path / p.mode),
        train.CheckpointConfig(save_checkpoint_steps=3),
    )
    model().train(1, data(), callbacks=[callback])
    assert os.listdir(tmp_path / "train") == ["net1.ckpt"]
    assert callback.latest_ckpt_file_name == str(tmp_path / "train" / "net1.ckpt")


def test_weights_and_optimizer_state_come_back(tmp_path):
    m = model()
    m.train(
        2,
        data(),
        callbacks=[
            train.ModelCheckpoint("a", str(tmp_path), train.CheckpointConfig(save_checkpoint_steps=6))
        ],
    )
    found = ms.load_checkpoint(str(tmp_path / "a-2_3.ckpt"))
    assert {
        "weight",
        "bias",
        "moments.weight",
        "moments.bias",
        "learning_rate",
        "momentum",
        "global_step",
    } <= set(found)
    other = model()
    ms.load_param_into_net(other.train_network, found)
    np.testing.assert_array_equal(other.predict_network.weight.asnumpy(), m.predict_network.weight.asnumpy())
    assert other._optimizer.global_step.asnumpy().tolist() == [6]


def test_extra_information_is_appended(tmp_path):
    saved(tmp_path, 1, save_checkpoint_steps=3, append_info=["epoch_num", "step_num", {"k": 1.5}])
    found = ms.load_checkpoint(str(tmp_path / "a-1_3.ckpt"))
    assert [float(found[n].asnumpy()) for n in ("epoch_num", "step_num", "k")] == [1, 3, 1.5]


def test_only_the_saved_network_is_saved(tmp_path):
    m = model()
    config = train.CheckpointConfig(3, saved_network=m.predict_network, format="safetensors")
    m.train(1, data(), callbacks=[train.ModelCheckpoint("a", str(tmp_path), config)])
    assert os.listdir(tmp_path) == ["a-1_3.safetensors"]
    assert set(ms.load_checkpoint(str(tmp_path / "a-1_3.safetensors"), format="safetensors")) == {
        "weight",
        "bias",
    }


def test_an_exception_saves_a_breakpoint_file(tmp_path):
    def fail(run_context):
        if run_context.original_args().cur_step_num == 2:
            raise RuntimeError("broken")

    config = train.CheckpointConfig(100, exception_save=True)
    with pytest.raises(RuntimeError, match="broken"):
        model().train(
            1, data(),
            callbacks=[train.ModelCheckpoint("a", str(tmp_path), config),
                train.LambdaCallback(on_train_step_end=fail)],
        )  # fmt: skip
    assert os.listdir(tmp_path) == ["a-1_2_breakpoint.ckpt"]


def test_evaluation_saves_nothing(tmp_path):
    model().eval(data(), callbacks=[train.ModelCheckpoint("a", str(tmp_path))])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (ValueError, lambda d: train.CheckpointConfig(0, 0, 0, 0)),
        (TypeError, lambda d: train.CheckpointConfig(1.5)),
        (ValueError, lambda d: train.CheckpointConfig(-1)),
        (TypeError, lambda d: train.CheckpointConfig(saved_network=3)),
        (TypeError, lambda d: train.CheckpointConfig(append_info="epoch_num")),
        (TypeError, lambda d: train.CheckpointConfig(append_info=["loss"])),
        (TypeError, lambda d: train.CheckpointConfig(append_info=[{"a": 1}, {"b": 2}])),
        (ValueError, lambda d: train.CheckpointConfig(enc_key=b"0" * 16, crc_check=True)),
        (ValueError, lambda d: train.CheckpointConfig(format="pt")),
        (ValueError, lambda d: train.ModelCheckpoint("a/b", d)),
        (TypeError, lambda d: train.ModelCheckpoint("a", d, 3)),
        (TypeError, lambda d: train.ModelCheckpoint("a", 3)),
        (ValueError, lambda d: BackupAndRestore(d, 0)),
    ],
)
def test_wrong_arguments_are_refused(kind, wrong, tmp_path):
    with pytest.raises(kind):
        wrong(str(tmp_path))


def test_a_backup_lets_training_go_on(tmp_path):
    def fail(run_context):
        if run_context.original_args().cur_step_num == 5:
            raise RuntimeError("power cut")

    first = model()
    with pytest.raises(RuntimeError):
        first.train(
            3,
            data(),
            callbacks=[BackupAndRestore(str(tmp_path)), train.LambdaCallback(on_train_step_end=fail)],
        )
    assert os.listdir(tmp_path) == ["backup.ckpt"]
    at_begin = []
    second = model()
    look = train.LambdaCallback(
        on_train_begin=lambda r: at_begin.append(second.predict_network.weight.asnumpy().copy())
    )
    second.train(1, data(), callbacks=[BackupAndRestore(str(tmp_path), delete_checkpoint=False), look])
    plain = model()
    plain.train(1, data())
    np.testing.assert_array_equal(at_begin[0], plain.predict_network.weight.asnumpy())
    model().train(1, data(), callbacks=[BackupAndRestore(str(tmp_path))])
    assert os.listdir(tmp_path) == []
