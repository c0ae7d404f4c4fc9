"""Functions that few scripts call."""

import itertools

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.ops import ascend_only
from mycelia.profiler import EnvProfiler, HostSystem


def t(values, dtype="float32"):
    return ms.Tensor(np.array(values, dtype))


def box(*numbers):
    return t([[[n] for n in numbers]])


@pytest.mark.parametrize(
    "first, second, settings, overlap",
    [
        ((10, 10, 4, 4, 0), (11, 10, 4, 4, 0), {}, 12 / 20),
        ((10, 10, 4, 4, 0), (11, 10, 4, 4, 0), dict(mode=1), 12 / 16),
        ((0, 0, 2, 2, 0), (0, 0, 2, 2, 90), {}, 1),
        ((0, 0, 2, 2, 0), (0, 0, 2, 2, 45), {}, 8 * (2**0.5 - 1) / (8 - 8 * (2**0.5 - 1))),
        ((0, 0, 4, 2, 0), (0, 0, 4, 2, 90), {}, 4 / 12),
        ((0, 0, 1, 1, 0), (5, 5, 1, 1, 30), {}, 0),
        ((0, 0, 2, 2, 0), (1, 1, 3, 3, 0), dict(trans=True), 1 / 7),
    ],
)
def test_overlap_of_turned_boxes(first, second, settings, overlap):
    found = ops.rotated_iou(box(*first), box(*second), **settings)
    assert found.shape == (1, 1, 1)
    np.testing.assert_allclose(found.asnumpy().item(), overlap, 1e-5, 1e-6)


def test_overlap_of_pairs_of_turned_boxes():
    boxes = t(np.random.default_rng(3).uniform(1, 4, (2, 5, 3)))
    every = ops.rotated_iou(boxes, boxes).asnumpy()
    np.testing.assert_allclose(np.diagonal(every, axis1=1, axis2=2), np.ones((2, 3)), 1e-5)
    np.testing.assert_allclose(every, every.swapaxes(1, 2), 1e-5, 1e-6)
    assert ops.rotated_iou(boxes, boxes, is_cross=False).shape == (2, 3, 1)
    with pytest.raises(ValueError):
        ops.rotated_iou(boxes, boxes, mode=2)
    with pytest.raises(ValueError):
        ops.rotated_iou(boxes[0], boxes[0])


@pytest.mark.parametrize("mode", [0, 1])
def test_rotary_positions_turn_pairs(mode):
    x, angle = np.random.default_rng(1).normal(size=(2, 3, 4)), 0.3
    found = ops.rotary_position_embedding(
        t(x), t(np.full((1, 3, 4), np.cos(angle))), t(np.full((1, 3, 4), np.sin(angle))), mode
    ).asnumpy()
    wanted = np.empty_like(x)
    for a, b in [(0, 2), (1, 3)] if mode == 0 else [(0, 1), (2, 3)]:
        wanted[..., a] = x[..., a] * np.cos(angle) - x[..., b] * np.sin(angle)
        wanted[..., b] = x[..., b] * np.cos(angle) + x[..., a] * np.sin(angle)
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)
    with pytest.raises(ValueError):
        ops.rotary_position_embedding(t(x), t(x), t(x), 2)


def test_tokens_go_to_their_experts_and_back():
    tokens = t([[1, 1], [2, 2], [3, 3]])
    rows, places = ops.moe_token_permute(tokens, t([[1, 0], [0, 2], [1, 0]], "int32"))
    assert rows.asnumpy()[:, 0].tolist() == [1, 2, 3, 1, 3, 2]
    assert places.asnumpy().tolist() == [3, 0, 1, 5, 4, 2]
    probs = t([[0.25, 0.75], [0.5, 0.5], [1, 0]])
    again = ops.moe_token_unpermute(rows, places, probs)
    np.testing.assert_allclose(again.asnumpy(), tokens.asnumpy())
    assert ops.moe_token_permute(tokens, t([2, 0, 1], "int32"), 2)[0].asnumpy()[:, 0].tolist() == [2, 3]


@pytest.mark.parametrize(
    "call, wanted",
    [
        (lambda x: ops.zero_(x), [0, 0, 0]),
        (lambda x: ops.put_(x, t([0, 2], "int64"), t([9, 8])), [9, 2, 8]),
        (lambda x: ops.inplace_sigmoid(x), [0.7310586, 0.8807971, 0.9525741]),
        (lambda x: ops.bernoulli_(x, 1.0), [1, 1, 1]),
        (lambda x: ops.stop_gradient_(x), [1, 2, 3]),
    ],
)
def test_in_place(call, wanted):
    x = t([1, 2, 3])
    call(x)
    np.testing.assert_allclose(x.asnumpy(), wanted, 1e-6)


def test_tuples_and_numbers():
    assert ops.tail((1, 2, 3)) == (2, 3) and ops.array_to_scalar(t(2)) == 2
    assert ops.tensor_range(t(0, "int64"), t(6, "int64"), t(2, "int64")).asnumpy().tolist() == [0, 2, 4]
    assert ops.tensor_muls(t([1, 2]), 2).asnumpy().tolist() == [2, 4]
    assert ops.reshape_(t([1, 2]), (2, 1)).shape == (2, 1)
    assert not ops.is_sequence_value_unknown((1, 2)) and not ops.is_sequence_shape_unknown((1, 2))
    with pytest.raises(TypeError, match="variable length"):
        ops.is_dynamic_sequence_element_unknown((1, 2))


def test_sparse_tensors_are_made_and_taken_apart():
    places, values = t([[0, 1]], "int32"), t([2.0])
    coo = ops.make_coo_tensor(places, values, (2, 2))
    assert isinstance(ops.make_sparse_tensor(places, values, (2, 2)), ms.SparseTensor)
    assert ops.coo_tensor_get_indices(coo).asnumpy().tolist() == [[0, 1]]
    assert ops.coo_tensor_get_values(coo).asnumpy().tolist() == [2]
    assert ops.coo_tensor_get_dense_shape(coo) == (2, 2)
    csr = ops.make_csr_tensor(t([0, 1, 1], "int32"), t([1], "int32"), values, (2, 2))
    assert ops.csr_tensor_get_indptr(csr).asnumpy().tolist() == [0, 1, 1]
    assert ops.csr_tensor_get_indices(csr).asnumpy().tolist() == [1]
    assert ops.csr_tensor_get_values(csr).asnumpy().tolist() == [2]
    assert ops.csr_tensor_get_dense_shape(csr) == (2, 2)
    for make in (ops.make_row_tensor, ops.make_row_tensor_inner):
        rows = make(t([1], "int32"), t([[2.0, 3]]), (2, 2))
        assert isinstance(rows, ms.RowTensor)
        assert ops.row_tensor_get_indices(rows).asnumpy().tolist() == [1]
        assert ops.row_tensor_get_values(rows).asnumpy().tolist() == [[2, 3]]
        assert ops.row_tensor_get_dense_shape(rows) == (2, 2)
        assert ops.row_tensor_add(t(np.ones((2, 2))), rows).asnumpy().tolist() == [[1, 1], [3, 4]]
    with pytest.raises(TypeError):
        ops.coo_tensor_get_values(csr)


ASCEND = """all_gather_matmul flash_attention_score fused_infer_attention_score incre_flash_attention
    lightning_indexer matmul_reduce_scatter nsa_compress nsa_compress_attention nsa_select_attention
    prompt_flash_attention sparse_flash_attention speed_fusion_attention all_to_all_v_c moe_distribute_combine
    moe_distribute_dispatch moe_init_routing_v2 multi_scale_deformable_attn_function
    ring_attention_update""".split()


@pytest.mark.parametrize("name", ASCEND)
def test_what_only_ascend_has_says_so(name):
    assert sorted(ASCEND) == ascend_only.__all__
    function = getattr(ops, name)
    for count in itertools.count():
        try:
            function(*range(count))
        except TypeError:
            continue  # more arguments are needed
        except NotImplementedError as error:
            assert "Ascend" in str(error) and name in str(error)
            break


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


def test_profiling_of_the_environment_measures_nothing():
    assert EnvProfiler().init_profiler() is None and EnvProfiler().analyse() is None
    assert HostSystem("disk") is HostSystem.DISK and ms.runtime.Stream().stream_id() == 0
