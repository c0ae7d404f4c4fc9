"""What stays of functions on files that only other machines write."""

import pytest

import mycelia as ms
from mycelia import nn, ops


def test_the_own_checkpoint_is_found(tmp_path):
    own = tmp_path / "rank_0" / "net.ckpt"
    own.parent.mkdir()
    ms.save_checkpoint(nn.Dense(2, 2), str(own))
    assert ms.get_ckpt_path_with_strategy(str(own), "none") == str(own)
    with pytest.raises(FileNotFoundError):
        ms.get_ckpt_path_with_strategy(str(tmp_path / "rank_0" / "lost.ckpt"), str(tmp_path / "none"))


def test_obfuscation_says_that_it_is_not_there():
    with pytest.raises(ms.errors.NotSupportedError, match="obfuscate_ckpt"):
        ms.obfuscate_ckpt(nn.Dense(2, 2), ".")


def test_collectives_are_names_of_ops():
    ops.set_comm_ops_inplace(True)
    with pytest.raises(TypeError):
        ops.set_comm_ops_inplace(1)
    assert ops.get_rank is ms.mint.distributed.get_rank
