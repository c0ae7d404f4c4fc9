"""Names for several devices and processes, where there is one."""

import pytest

import mycelia as ms
from mycelia import ops


def test_processes_and_files_of_several_devices():
    assert ops.get_world_size() == 1 and ops.is_initialized() in (True, False)
    assert ms.mindio_preload("a.ckpt") is False and ms.set_mindio_server_info(4) is None
    with pytest.raises(ValueError):
        ms.set_mindio_server_info(0)
    with pytest.raises(NotImplementedError, match="Ascend"):
        ms.export_split_mindir("net.mindir")
    with pytest.raises(RuntimeError):
        ms.train.Model(ms.nn.ReLU()).infer_train_layout(None)
    for name in "build_searched_strategy load_distributed_checkpoint merge_sliced_parameter".split():
        assert getattr(ms.train, name) is getattr(ms.parallel, name)
    assert ms.train.restore_group_info_list is ms.restore_group_info_list
