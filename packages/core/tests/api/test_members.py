"""Members of Cells, optimizers, Parameters and Tensors, and settings, that scripts use in passing."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import amp, hal, nn, ops, runtime
from mycelia.common.initializer import Zero, initializer
from mycelia.experimental import optim
from mycelia.experimental.optim import lr_scheduler


def dense():
    return nn.Dense(2, 2, weight_init="ones", bias_init="zeros")


def sgd(**settings):
    return nn.SGD(dense().trainable_params(), 0.1, **settings)


def t(values, dtype="float32"):
    return ms.Tensor(np.array(values, dtype))


OWNERS = pytest.mark.parametrize("make", [dense, sgd], ids=["Cell", "Optimizer"])


@OWNERS
@pytest.mark.parametrize(
    "name, value",
    [
        ("bprop_debug", False),
        ("parameter_layout_dict", {}),
        ("phase_cache", {}),
        ("compile_cache", set()),
        ("exist_names", set()),
    ],
)
def test_attributes_of_cells(make, name, value):
    assert getattr(make(), name) == value


@OWNERS
def test_methods_of_cells_that_change_nothing(make):
    cell = make()
    for call in (
        lambda: cell.set_data_parallel(),
        lambda: cell.offload(),
        lambda: cell.remove_redundant_parameters(),
        lambda: cell.update_cell_type("quant"),
        lambda: cell.cast_inputs((t([1]),), ms.float16),
        lambda: cell.set_jit_config(ms.JitConfig()),
    ):
        assert call() is None
    assert cell.set_broadcast_flag(True) is cell and cell.to_empty() is cell
    assert list(cell.buffers()) == []
    for name in ("pipeline_segment", "pipeline_stage"):
        if hasattr(cell, name):  # a setting: what is set is read again
            setattr(cell, name, 0)
            assert getattr(cell, name) == 0


@OWNERS
def test_marks_of_the_parameters_of_cells(make):
    cell = make()
    assert cell.set_comm_fusion(2) is cell
    assert {p.comm_fusion for p in cell.trainable_params()} == {2}
    with pytest.raises(ValueError):
        cell.set_comm_fusion(-1)
    made = cell.init_parameters_data()
    assert all(k is v for k, v in made.items()) and "weight" in {p.name for p in made}
    assert "weight" in cell.parameters_broadcast_dict()
    cell.set_mixed_precision_type(cell.get_mixed_precision_type())
    assert str(cell.get_mixed_precision_type()).endswith("NOTSET")


def test_cells_run_in_other_ways_too():
    cell, x = dense(), t([[1, 2]])
    assert cell.compile_and_run(x).asnumpy().tolist() == [[3, 3]]
    assert cell.run_construct((x,), {}).asnumpy().tolist() == [[3, 3]]
    seen = []
    cell.register_state_dict_pre_hook(lambda owner, prefix, keep: seen.append(prefix))
    assert set(cell.state_dict()) == {"weight", "bias"} and seen == [""]
    packed = []

    def pack(value):
        packed.append(value.shape)
        return value

    cell.register_saved_tensors_hooks(pack, lambda value: value)
    gradient = ms.grad(lambda a: cell(a).sum())(x)
    assert gradient.asnumpy().tolist() == [[2, 2]]


def test_parameters_can_be_made_late():
    from mycelia.nn.utils import no_init_parameters

    with no_init_parameters():
        cell = nn.Dense(2, 2, weight_init="ones")
    assert cell.weight.shape == (2, 2)
    cell.init_parameters_data()
    assert cell.weight.init_data().asnumpy().tolist() == [[1, 1], [1, 1]]


def test_what_optimizers_do_to_gradients():
    eights = t(np.full((2, 2), 8)), t([8, 8])
    optimizer = sgd(weight_decay=0.5, loss_scale=4.0)
    assert [g.asnumpy().max() for g in optimizer.scale_grad(eights)] == [2, 2]
    assert [g.asnumpy().tolist() for g in optimizer.decay_weight(eights)] == [[[10, 10], [10, 10]], [8, 8]]
    for same in (optimizer.flatten_gradients(eights), optimizer.gradients_centralization(eights)):
        assert [g.asnumpy().max() for g in same] == [8, 8]


def test_groups_of_experimental_optimizers():
    first, second = ms.Parameter(t([1, 2]), name="a"), ms.Parameter(t([3]), name="b")
    optimizer = optim.SGD([first], lr=0.5)
    optimizer.add_param_group({"params": [second], "lr": 0.25})
    assert [float(g["lr"]) for g in optimizer.param_groups] == [0.5, 0.25]
    assert optimizer.param_groups[1]["params"] == [second]
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, cooldown=2)
    assert not plateau.in_cooldown()
    plateau.step(1.0)
    plateau.step(2.0)
    assert plateau.in_cooldown()
    halved = lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    assert isinstance(halved, lr_scheduler.LRScheduler)


@pytest.mark.parametrize(
    "name",
    ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"],
)
def test_a_step_of_an_experimental_optimizer_goes_downhill(name):
    weight = ms.Parameter(t([1.0, -2.0]), name="w")
    optimizer = getattr(optim, name)([weight], lr=0.1)
    optimizer((weight.value() * 2,))
    assert (np.abs(weight.asnumpy()) < [1, 2]).all()
    assert callable(getattr(optimizer, "implementation", optimizer.construct))


@pytest.mark.parametrize(
    "name, value",
    [
        ("cache_enable", False),
        ("cache_shape", []),
        ("layerwise_parallel", False),
        ("parallel_optimizer", True),
        ("parallel_optimizer_comm_recompute", False),
        ("sliced", False),
        ("inited_param", None),
    ],
)
def test_attributes_of_parameters(name, value):
    parameter = ms.Parameter(t([1, 2]), name="p")
    assert getattr(parameter, name) == value
    assert parameter.init_data() is parameter and parameter.param_info is not None


def test_members_of_tensors():
    x = t([1, 2])
    assert x.init_finished is True and x.is_shared() is False
    for name in ("param_info", "parent_tensor_", "index_of_parent_", "symbolic_shape"):
        assert getattr(x, name) is None
    assert x.flush_from_cache() is None and x.data_sync(True) is None and x.wait_pipeline() is None
    assert x.set_init_flag(True) is None
    assert isinstance(x.data_ptr(), int) and x.untyped_storage().nbytes() == 8
    for name in ("delete_", "assign_value_cpp", "set_cast_dtype", "offload", "offload_file_path"):
        assert callable(getattr(x, name))
    with pytest.raises(ValueError):
        x.to_(ms.float16)
    handle = x.register_hook(lambda g: g)
    handle.remove()
    assert np.from_dlpack(x).tolist() == ms.from_dlpack(ms.to_dlpack(x)).asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize("home", [ms, hal, runtime], ids=["mycelia", "hal", "runtime"])
def test_counts_of_memory_can_be_reset(home):
    for name in ("max_memory_reserved", "memory_reserved"):
        assert getattr(home, name)() >= 0
    assert home.reset_max_memory_reserved() is None and home.reset_max_memory_allocated() is None
    assert home.max_memory_reserved() <= home.memory_reserved() + home.max_memory_reserved()


def test_streams_and_events():
    stream, event = hal.Stream(), hal.Event()
    hal.set_cur_stream(stream)
    assert hal.current_stream() == stream
    hal.set_cur_stream(hal.default_stream())
    event.record()
    assert event.synchronize() is None and stream.synchronize() is None and hal.synchronize() is None
    assert stream.wait_event(event) is None and stream.wait_stream(hal.default_stream()) is None
    assert hal.communication_stream() is not None and hal.get_arch_list() is None
    for name in ("get_device_capability", "get_device_properties"):
        with pytest.raises(TypeError):
            getattr(hal, name)()


@pytest.fixture
def settings():
    """Settings as they were, afterwards."""
    names = ("runtime_num_threads", "deterministic", "max_call_depth")
    before = {name: ms.get_context(name) for name in names}
    yield
    ms.set_context(**before)


@pytest.mark.parametrize(
    "call, name, value",
    [
        (lambda: runtime.dispatch_threads_num(2), "runtime_num_threads", 2),
        (lambda: ms.set_deterministic(True), "deterministic", "ON"),
        (lambda: ms.set_recursion_limit(900), "max_call_depth", 900),
    ],
)
def test_functions_that_set_one_setting(settings, call, name, value):
    assert call() is None
    assert ms.get_context(name) == value


def test_settings_without_effect_on_a_cpu_are_taken():
    assert runtime.set_cpu_affinity(False) is None
    assert runtime.set_kernel_launch_capture(False) is None
    with pytest.raises(TypeError):
        runtime.set_cpu_affinity("no")


def test_settings_of_parallel_runs_are_kept_and_reset():
    ms.set_algo_parameters(fully_use_devices=True)
    assert ms.get_algo_parameters("fully_use_devices") is True
    ms.reset_algo_parameters()
    assert ms.get_algo_parameters("fully_use_devices") is False
    ms.set_ps_context(enable_ps=True)
    assert ms.get_ps_context("enable_ps") is True
    ms.reset_ps_context()
    assert ms.get_ps_context("enable_ps") is False


def test_loss_scales_say_whether_an_overflow_drops_the_step():
    assert amp.FixedLossScaleManager(2.0, False).get_drop_overflow_update() is False
    assert amp.DynamicLossScaleManager().get_drop_overflow_update() is True
    assert issubclass(amp.FixedLossScaleManager, amp.LossScaleManager)
    assert issubclass(amp.StaticLossScaler, amp.LossScaler)


def test_more_of_ops():
    assert initializer(Zero(), (2,)).init_data().asnumpy().tolist() == [0, 0]
    np.testing.assert_allclose(ops.bessel_y1(t([0.5, 1.5])).asnumpy(), [-1.4714724, -0.4123086], 1e-5)
    assert ops.MoveTo()(t([1]), "CPU", True).asnumpy().tolist() == [1]
    found = ops.STFT(
        n_fft=4, hop_length=2, win_length=4, normalized=False, onesided=True, return_complex=False
    )(t(np.arange(8)), t(np.ones(4)))
    assert found.asnumpy()[0].tolist() == [[6, 0], [14, 0], [22, 0]]
    logits = t(np.log(np.full((3, 1, 3), 1 / 3)))
    loss, _ = ops.CTCLossV2()(logits, t([[1, 2]], "int32"), t([3], "int32"), t([2], "int32"))
    np.testing.assert_allclose(loss.asnumpy(), [1.686399], 1e-5)
    shape = ops.DeformableOffsets(strides=(1, 1, 1, 1), pads=(0, 0, 0, 0), ksize=(1, 1))(
        t(np.arange(4).reshape(1, 1, 2, 2)), t(np.zeros((1, 3, 2, 2)))
    ).shape
    assert shape == (1, 1, 2, 2)
    pool = ops.FractionalMaxPool(pooling_ratio=[1.0, 1.5, 1.5, 1.0], deterministic=True, seed=3, seed2=4)
    assert pool(t(np.arange(16).reshape(1, 4, 4, 1)))[0].shape == (1, 2, 2, 1)


def test_axes_of_flatten_are_checked():
    assert nn.Flatten().check_axis_valid(1, 3) is None
    with pytest.raises(ValueError):
        nn.Flatten().check_axis_valid(5, 3)


def test_printing_from_ops(capfd):
    ops.print_("seen", t([1.0]))
    assert "seen" in capfd.readouterr().out
