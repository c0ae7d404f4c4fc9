"""Conversion between .ckpt and .safetensors."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor

W = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_there_and_back(tmp_path):
    for name in ("a", "sub/b"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        ms.save_checkpoint({"w": Tensor(W), "n": Tensor(np.int64(3))}, str(tmp_path / "in" / name))
    ms.ckpt_to_safetensors(str(tmp_path / "in"), str(tmp_path / "st"), {"w": "weight"}, "b")
    assert not (tmp_path / "st/a.safetensors").exists()
    loaded = ms.load_checkpoint(str(tmp_path / "st/sub/b.safetensors"), format="safetensors")
    np.testing.assert_array_equal(loaded["weight"].asnumpy(), W)
    ms.safetensors_to_ckpt(str(tmp_path / "st/sub/b.safetensors"))
    assert ms.load_checkpoint(str(tmp_path / "st/sub/b.ckpt"))["n"].asnumpy() == 3


def test_wrong_arguments(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        ms.ckpt_to_safetensors(str(tmp_path / "none"))
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(ValueError, match=".ckpt"):
        ms.ckpt_to_safetensors(str(tmp_path / "x.txt"))
    ms.save_checkpoint({"w": Tensor(W), "v": Tensor(W)}, str(tmp_path / "c"), append_dict={"note": "text"})
    with pytest.raises(ValueError, match="texts.*note"):
        ms.ckpt_to_safetensors(str(tmp_path / "c.ckpt"))
    ms.save_checkpoint({"w": Tensor(W), "v": Tensor(W)}, str(tmp_path / "c"))
    with pytest.raises(ValueError, match="same name"):
        ms.ckpt_to_safetensors(str(tmp_path / "c.ckpt"), name_map={"w": "v"})


def test_a_future_gives_the_loaded_values(tmp_path):
    ms.save_checkpoint({"w": Tensor(W)}, str(tmp_path / "c"))
    np.testing.assert_array_equal(
        ms.load_checkpoint_async(str(tmp_path / "c.ckpt")).result()["w"].asnumpy(), W
    )
    with pytest.raises(ValueError, match="does not exist"):
        ms.load_checkpoint_async(str(tmp_path / "d.ckpt")).result()
    assert ms.async_ckpt_thread_status() is False
