"""What MindSpore 1.x had and 2.x has no name for, in terms of what replaced it."""

from __future__ import annotations

import re
from pathlib import Path

from mycelia import nn, ops
from mycelia.engine.base import config, dtypes, log
from mycelia.engine.compile import jit
from mycelia.engine.ops.control_flow.summary_sink import record
from mycelia.engine.ops.infer import broadcast_shapes, unbroadcast
from mycelia.engine.tensors.tensor import Tensor
from mycelia.train import Callback
from mycelia.train.callbacks.summary import evaluation_lineage, train_lineage


class SummaryStep(Callback):
    """Lets a `SummaryRecord` write what the summary ops collected, every `flush_step` steps.

    Later releases have `SummaryCollector`, which owns its writer.
    """

    def __init__(self, writer, flush_step: int = 10) -> None:
        super().__init__()
        if not isinstance(flush_step, int) or isinstance(flush_step, bool) or flush_step <= 0:
            raise ValueError(f"SummaryStep: flush_step must be a positive int, but got {flush_step!r}")
        self._writer, self._flush_step = writer, flush_step

    def step_end(self, run_context) -> None:
        parameters = run_context.original_args()
        if parameters.cur_step_num % self._flush_step == 0:
            self._writer.record(parameters.cur_step_num, parameters.train_network)


class TrainLineage(Callback):
    """Writes what a training was made of to a `SummaryRecord` when it ends.

    Later releases have `SummaryCollector`, which writes it by itself.
    """

    def __init__(self, summary_record, raise_exception: bool = False) -> None:
        super().__init__()
        self._record, self._raises = summary_record, raise_exception

    def end(self, run_context) -> None:
        params = run_context.original_args()
        if params.mode == "train":
            self._write("train_lineage", lambda: train_lineage(params))

    def _write(self, plugin: str, made) -> None:
        try:
            self._record.add_value(plugin, plugin, made())
            self._record.record(0, plugin_filter=lambda name: name == plugin)
        except Exception as error:
            if self._raises:
                raise
            log.logger(__name__).warning("%s is not recorded: %s", plugin, error)


class EvalLineage(TrainLineage):
    """Writes what an evaluation gave to a `SummaryRecord` when it ends."""

    def end(self, run_context) -> None:
        params = run_context.original_args()
        if params.mode == "eval":
            self._write("eval_lineage", lambda: evaluation_lineage(params))


def DepthwiseConv2d(in_channels, out_channels, kernel_size, *arguments, **options):
    """`nn.Conv2d` with a group for each channel. Shapes: [N, C, H, W] -> [N, C, H', W']."""
    options["group"] = in_channels
    return nn.Conv2d(in_channels, out_channels, kernel_size, *arguments, **options)


class DepthwiseConv2dNative:
    """Depthwise convolution, weights [multiplier, C, h, w]: `ops.Conv2D` with a group for each channel."""

    def __init__(
        self, channel_multiplier, kernel_size, mode=3, pad_mode="valid", pad=0, stride=1, dilation=1, group=1
    ):
        self._settings = {"mode": 1, "pad_mode": pad_mode, "pad": pad, "stride": stride, "dilation": dilation}
        self._multiplier, self._kernel_size = channel_multiplier, kernel_size

    def __call__(self, x, weight):
        channels = x.shape[1]
        weight = ops.reshape(
            ops.transpose(weight, (1, 0, 2, 3)), (channels * self._multiplier, 1, *weight.shape[2:])
        )
        conv = ops.Conv2D(channels * self._multiplier, self._kernel_size, group=channels, **self._settings)
        return conv(x, weight)


def cell_attr_register(fn=None, attrs=None):
    """A decorator of `__init__` of Cells, which kept its arguments for the compiler: not needed now."""
    return fn if fn is not None else cell_attr_register


def contiguous(x):
    """`x.contiguous()`."""
    return x.contiguous()


class CellGraphExecutor:
    """The compiler of Cells, as tests of MindSpore call it."""

    def compile(self, cell, *inputs, phase="predict", do_convert=True, auto_parallel_mode=False, **options):
        """Compile `cell` for these inputs; what a call would report about its code is reported now."""
        cell.compile(*inputs)
        return phase, True

    def __call__(self, cell, *inputs, phase=""):
        return cell(*inputs)


class JitExecutor:
    """The compiler of functions: ``JitExecutor(fn, created)(*inputs)`` is ``jit(fn)(*inputs)``."""

    def __init__(self, fn, ms_create_time, input_signature=None, process_obj=None, jit_config=None) -> None:
        self._run, self._name = jit(fn), fn.__name__

    def compile(self, method_name, *inputs, **named):
        """Compile for these inputs; what a call would report about the code is reported now."""
        self._run(*inputs, **named)
        return method_name or self._name

    def __call__(self, *inputs, **named):
        return self._run(*inputs, **named)


def no_recursive(callable_obj):
    """A decorator of functions and Cells that do not call themselves: nothing is to be gained here."""
    return callable_obj


def core(fn=None, **flags):
    """A decorator that marks functions for the compiler, which needs no marks here."""
    return fn if fn is not None else no_recursive


MONAD = None  # orders effects in graphs of MindSpore; here the order of the code does


def is_generated_name(name: str) -> bool:
    """Whether a Parameter has this name because it was given none."""
    return name.startswith("Parameter#")


class TopTypeof:
    """`TopTypeof()(x)`: the kind of a value, for tensors ``mindspore.TensorType``."""

    def __call__(self, x):
        return dtypes.TensorType(x.dtype) if isinstance(x, Tensor) else type(x)


def the_context():
    """The object that holds the settings."""
    return config


def get_jit_config() -> dict:
    """What ``set_context(jit_config=...)`` was given."""
    return dict(config.get("jit_config"))


class _PynativeExecutor:
    """The executor of eager ops. Ops have run when their call returns, so there is nothing to wait for."""

    def sync(self) -> None:
        """Wait for all ops."""

    def set_creation_type(self, tensor, creation_type) -> None:
        """Mark how a view came to be, see `native.CreationType`."""


cell_graph_executor = CellGraphExecutor()
compiled_cells: dict[int, set] = {}  # Cells keep their own graphs: scripts that clear this find it empty
pynative_executor = _PynativeExecutor()
current_context = None  # it is made when it is asked for


def nothing(*arguments, **options) -> None:
    """What prepared or ended parts of MindSpore that need neither here."""


# -- what rules of gradients of users call


def binop_grad_common(x, y, dx, dy):
    """Gradients of an operation of two broadcast operands, summed to the operands' shapes."""
    return unbroadcast(dx, x.shape), unbroadcast(dy, y.shape)


def get_broadcast_shape(x_shape, y_shape, prim_name, shape_type="", arg_name1="x", arg_name2="y"):
    """The shape of two broadcast operands. Errors: ValueError if they do not fit."""
    return list(broadcast_shapes(tuple(x_shape), tuple(y_shape)))


def generate_shape_index(out_shape, indices_shape, axis):
    """The order of axes that brings those of the indices to the front: for `unsorted_segment_sum`."""
    rank, first = len(out_shape), axis + len(out_shape) - len(indices_shape) + 1 if axis < 0 else axis
    moved = tuple(range(first, first + len(indices_shape)))
    return (*moved, *(i for i in range(rank) if i not in moved))


# -- callbacks as they were called from inside of graphs

_current_net: list[nn.Cell] = []


def set_current_net(net) -> None:
    """Name the network whose Parameters `fill_current_net` sets."""
    _current_net[:] = [net]


def fill_current_net(parameter_list) -> bool:
    """Set Parameters of the current network from ``[{"name": ..., "data": Tensor}, ...]``."""
    given = {item["name"]: item["data"] for item in parameter_list}
    for net in _current_net:
        for parameter in net.get_parameters():
            if parameter.name in given:
                parameter.set_data(given[parameter.name].astype(parameter.dtype))
    return True


def free_prefix(directory: str, prefix: str, exception: bool = False) -> str:
    """`prefix`, with a number if checkpoints in `directory` begin with it already."""
    taken = [path.name for path in Path(directory).glob(f"{prefix}*.ckpt")] if directory else []
    numbers = [int(n) for name in taken for n in re.findall(rf"^{re.escape(prefix)}_(\d+)-", name)]
    return f"{prefix}_{max(numbers, default=0) + 1}" if taken else prefix


class CheckpointManager:
    """The checkpoints of one prefix in a directory, newest last."""

    def __init__(self) -> None:
        self._files: list[str] = []

    @property
    def ckpoint_filelist(self) -> list[str]:
        """Their paths."""
        return self._files

    @property
    def ckpoint_num(self) -> int:
        """How many there are."""
        return len(self._files)

    def update_ckpoint_filelist(self, directory: str, ckpt_prefix: str) -> None:
        """Look for ``PREFIX-*.ckpt`` and ``PREFIX_*.ckpt`` in a directory."""
        found = [
            p for p in Path(directory).glob("*.ckpt") if re.match(rf"{re.escape(ckpt_prefix)}[-_]", p.name)
        ]
        self._files = [str(path) for path in sorted(found, key=lambda path: path.stat().st_mtime_ns)]

    def remove_ckpoint_file(self, file_name: str) -> None:
        """Remove one."""
        path = Path(file_name)
        path.chmod(0o600)
        path.unlink()
        if file_name in self._files:
            self._files.remove(file_name)

    def remove_oldest_ckpoint_file(self) -> None:
        """Remove the oldest."""
        self.remove_ckpoint_file(self._files[0])


def zeros_like_batch(types, shapes, batch_expand_num: int = 1) -> list[Tensor]:
    """Tensors of zeros, with batches larger by a factor. Errors: ValueError for other numbers of shapes."""
    if len(types) != len(shapes):
        raise ValueError(f"there are {len(types)} types, but {len(shapes)} shapes")
    sizes = [(shape[0] * batch_expand_num, *shape[1:]) if shape else () for shape in shapes]
    return [ops.zeros(size, dtype) for size, dtype in zip(sizes, types)]


def histogram_bins(count: int) -> int:
    """How many buckets MindSpore's summaries give a histogram of `count` finite values."""
    if count == 0:
        return 1
    if count <= 5:
        return 2
    if count <= 10:
        return 3
    return count // 10 + 1 if count <= 880 else 90


_KIND = re.compile(r"(?P<name>.*)\[:(?P<kind>\w+)\]$")


def cache_summary_data(summary: list[dict]) -> None:
    """Give values, named like ``loss[:Scalar]``, to every open SummaryRecord, as summary operators do."""
    for item in summary:
        found = _KIND.match(item["name"])
        if found is not None:
            record(found["kind"].lower(), found["name"], item["data"])
