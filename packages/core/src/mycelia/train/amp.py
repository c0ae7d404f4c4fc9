"""Networks in mixed precision: the levels of `auto_mixed_precision`, and training steps made for them.

O1 casts around the layers and primitives of the white list, O2 computes all but the black list in float16 or
bfloat16, O3 everything; "auto" decides for each op. Parameters stay float32.
"""

from __future__ import annotations

import types

from mycelia import nn, ops
from mycelia.engine.base import dtypes, errors, log
from mycelia.nn.cell import Cell
from mycelia.nn.precision import automatic_function, cast_floats
from mycelia.train.boost_level import check_boost_level
from mycelia.train.loss_scale_manager import DynamicLossScaleManager, LossScaleManager

__all__ = [
    "auto_mixed_precision", "build_train_network", "custom_mixed_precision", "get_black_list",
    "get_white_list",
]  # fmt: skip

_WHITE_CELLS = (
    "Conv1d Conv2d Conv3d Conv1dTranspose Conv2dTranspose Conv3dTranspose Dense LSTMCell RNNCell GRUCell"
).split()
_WHITE_PRIMITIVES = (
    "Conv2D Conv3D Conv2DTranspose Conv3DTranspose Conv2DBackpropInput MatMul BatchMatMul PReLU ReLU Ger"
).split()
_BLACK_CELLS = "BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm".split()
#: Layers that are a primitive of the white list inside.
_LAYER_OF = {"ReLU": "ReLU", "PReLU": "PReLU"}
_LEVELS = ("O0", "O1", "O2", "O3", "auto")
_SHORT_TYPES = (dtypes.float16, dtypes.bfloat16)


def get_white_list() -> list[type]:
    """A copy of the list of layers and primitives that O1 computes in float16."""
    primitives = [getattr(ops, name) for name in _WHITE_PRIMITIVES if hasattr(ops, name)]
    return [getattr(nn, name) for name in _WHITE_CELLS] + primitives


def get_black_list() -> list[type]:
    """A copy of the list of layers that O2 keeps in float32."""
    return [getattr(nn, name) for name in _BLACK_CELLS]


# ---- cells that are put around others ----------------------------------------------------------------------


class _OutputTo16(Cell):
    """A float32 cell among float16 ones: its output is cast."""

    def __init__(self, backbone: Cell, dtype=dtypes.float16):
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self.__dict__["dtype"] = dtype

    def construct(self, *args, **kwargs):
        return ops.cast(self._backbone(*args, **kwargs), self.dtype)


class _OutputTo32(Cell):
    """A network whose output is cast to float32."""

    def __init__(self, backbone: Cell):
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *args, **kwargs):
        return cast_floats(self._backbone(*args, **kwargs), dtypes.float32)


class _CastPrimitive:
    """A primitive whose floating inputs are cast to a short type, and its output to float32."""

    def __init__(self, primitive, dtype):
        self._primitive, self._dtype = primitive, dtype

    def __call__(self, *args):
        return cast_floats(self._primitive(*cast_floats(args, self._dtype)), dtypes.float32)

    def __getattr__(self, name: str):
        if name.startswith("__") or name == "_primitive":
            raise AttributeError(name)
        return getattr(self._primitive, name)

    def __repr__(self) -> str:
        return repr(self._primitive)


# ---- lists applied to a network ----------------------------------------------------------------------------

_rewritten: dict[str, int] = {}  # class name -> how many networks of it have been rewritten


def _rewrite(network: Cell, white_list: list, dtype) -> Cell:
    """A copy of `network` (with the same Parameters) that casts around what is in `white_list`."""
    layers = [c for c in white_list if issubclass(c, Cell)]
    primitives = tuple(c for c in white_list if not issubclass(c, Cell))
    layers += [getattr(nn, _LAYER_OF[c.__name__]) for c in primitives if c.__name__ in _LAYER_OF]
    made = _with_casts(network, tuple(layers), primitives, dtype)
    kind = type(network)
    count = _rewritten.get(kind.__name__, 0)
    _rewritten[kind.__name__] = count + 1
    made.__class__ = type(f"{kind.__name__}Opt" + (f"_{count}" if count else ""), (kind,), {})
    return made


def _with_casts(cell: Cell, layers: tuple, primitives: tuple, dtype) -> Cell:
    if any(getattr(cell, flag, False) for flag in ("fp16", "fp32", "bf16")):
        return cell  # the user's own choice
    made = object.__new__(type(cell))
    made.__dict__.update(cell.__dict__)
    made.__dict__.pop("_compiled", None)
    made.__dict__["_cells"] = type(cell._cells)(cell._cells)
    white = type(cell) in layers
    for name, sub in cell._cells.items():
        if sub is not None:
            inner = _in_short(sub, dtype) if white else _with_casts(sub, layers, primitives, dtype)
            made._cells[name] = inner
            if cell.__dict__.get(name) is sub:
                made.__dict__[name] = inner
    for name, value in cell.__dict__.items():
        if primitives and type(value) in primitives:
            made.__dict__[name] = _CastPrimitive(value, dtype)
    if white:
        made.__dict__.update(_to_float=dtype, _amp_output=True)
    made._refresh_route()
    return made


def _in_short(cell: Cell, dtype) -> Cell:
    """A copy of a part of a layer that computes in `dtype` throughout."""
    made = object.__new__(type(cell))
    made.__dict__.update(cell.__dict__)
    made.__dict__["_cells"] = type(cell._cells)(cell._cells)
    for name, sub in cell._cells.items():
        if sub is not None:
            made._cells[name] = made.__dict__[name] = _in_short(sub, dtype)
    made.__dict__["_to_float"] = dtype
    made._refresh_route()
    return made


def _all_but(network: Cell, black_list: tuple, dtype) -> Cell:
    """`network` itself, computing in `dtype` except for the cells of `black_list`."""
    network.to_float(dtype)
    _keep_float32(network, black_list, dtype)
    return network


def _keep_float32(network: Cell, black_list: tuple, dtype) -> None:
    for name, sub in network.name_cells().items():
        if sub is network:
            continue
        if isinstance(sub, black_list):
            wrapped = _OutputTo16(sub.to_float(dtypes.float32), dtype)
            network._cells[name] = wrapped
            if network.__dict__.get(name) is sub:
                network.__dict__[name] = wrapped
            network._changed()
        elif not isinstance(sub, _OutputTo16):
            _keep_float32(sub, black_list, dtype)


def _do_keep_batchnorm_fp32(network: Cell) -> None:
    """Normalizations of `network` in float32, in place; scripts import it by this name."""
    _keep_float32(network, tuple(get_black_list()), dtypes.float16)


def __getattr__(name: str):
    lists = {"AMP_WHITE_LIST": get_white_list, "AMP_BLACK_LIST": get_black_list}
    if name not in lists:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, lists[name]())


# ---- levels ------------------------------------------------------------------------------------------------


def _check_dtype(where: str, dtype) -> None:
    if dtype not in _SHORT_TYPES:
        raise errors.value_error(where, f"dtype must be float16 or bfloat16, but got {dtype}")


def auto_mixed_precision(network, amp_level: str = "O0", dtype=dtypes.float16):
    """The network in mixed precision; levels O2 and O3 change the given one.

    O0: as it is. O1: layers and primitives of the white list compute in `dtype`. O2: all but the black
    list. O3: everything. auto: each op in the type that suits it; takes functions too.
    Errors: TypeError for what is no Cell, ValueError for another level or dtype.
    """
    if not isinstance(network, Cell):
        function = isinstance(network, (types.FunctionType, types.MethodType))
        if amp_level != "auto" or not function:
            raise errors.type_error(
                "auto_mixed_precision",
                f"with level {amp_level!r} network must be a Cell, but got {type(network).__name__}",
            )
    _check_dtype("auto_mixed_precision", dtype)
    if amp_level == "O0":
        return network
    if getattr(network, "_amp_level", None) in ("O1", "O2", "O3", "auto"):
        log.logger(__name__).warning(
            "The network's auto mixed-precision level is adjusted from %s to %s; repeated calls can make it "
            "slower.", network._amp_level, amp_level,
        )  # fmt: skip
    if amp_level == "O1":
        network = _rewrite(network, get_white_list(), dtype)
    elif amp_level == "O2":
        network = _OutputTo32(_all_but(network, tuple(get_black_list()), dtype))
    elif amp_level == "O3":
        network = _OutputTo32(network.to_float(dtype))
    elif amp_level == "auto":
        if isinstance(network, Cell):
            network.__dict__["_amp_auto"] = dtype
            network._refresh_route()
        else:
            network = automatic_function(network, dtype)
    else:
        raise errors.value_error(
            "auto_mixed_precision", f"there is no level {amp_level!r}: use one of {_LEVELS}"
        )
    network.__dict__["_amp_level"] = amp_level
    return network


def custom_mixed_precision(network, *, white_list=None, black_list=None, dtype=dtypes.float16):
    """The network in mixed precision by one's own list: as O1 with `white_list`, as O2 with `black_list`.

    Errors: TypeError for lists that hold anything but classes of Cells (or primitives, white), ValueError
    unless exactly one of them is given.
    """
    where = "custom_mixed_precision"
    if not isinstance(network, Cell):
        raise errors.type_error(where, f"network must be a Cell, but got {type(network).__name__}")
    if (white_list is None) == (black_list is None):
        raise errors.value_error(where, "one of white_list and black_list must be given, and not both")
    _check_dtype(where, dtype)
    if white_list is not None:
        _check_list("white_list", white_list, (Cell, ops.Primitive))
        return _rewrite(network, white_list, dtype)
    _check_list("black_list", black_list, (Cell,))
    for kept in get_black_list():
        if kept not in black_list:
            log.logger(__name__).warning("%s is removed from internal black list.", kept)
    return _OutputTo32(_all_but(network, tuple(black_list), dtype))


def _check_list(name: str, classes, bases: tuple) -> None:
    where = "custom_mixed_precision"
    if not isinstance(classes, list):
        raise errors.type_error(where, f"{name} must be a list, but got {type(classes).__name__}")
    for c in classes:
        if not isinstance(c, type) or not issubclass(c, bases):
            kinds = " or ".join(b.__name__ for b in bases)
            raise errors.type_error(where, f"{name} must hold subclasses of {kinds}, but got {c!r}")


# ---- training networks -------------------------------------------------------------------------------------


class _CastWithLossCell(Cell):
    """``loss_fn(backbone(data), label)`` with output and label in float32."""

    def __init__(self, backbone: Cell, loss_fn: Cell):
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data, label):
        out = cast_floats(self._backbone(data), dtypes.float32)
        return self._loss_fn(out, cast_floats(label, dtypes.float32))


_CastWithLossCell.__name__ = "WithLossCell"

#: Level -> type of the model, whether normalizations stay in float32, whether the loss is scaled.
_CONFIG = {
    "O0": (dtypes.float32, False, False),
    "O1": (dtypes.float32, False, False),
    "O2": (dtypes.float16, True, True),
    "O3": (dtypes.float16, False, False),
    "auto": (dtypes.float32, False, False),
}


def _check_options(options: dict) -> None:
    where = "build_train_network"
    for name, value in options.items():
        if name == "cast_model_type":
            if value not in (dtypes.float16, dtypes.float32):
                raise errors.type_error(where, f"cast_model_type must be float16 or float32, but got {value}")
        elif name == "keep_batchnorm_fp32":
            if not isinstance(value, bool):
                raise errors.type_error(where, f"keep_batchnorm_fp32 must be a bool, but got {value!r}")
        elif name == "loss_scale_manager":
            if value and not isinstance(value, LossScaleManager):
                raise errors.type_error(
                    where, f"loss_scale_manager must be a LossScaleManager, but got {type(value).__name__}"
                )
        else:
            raise errors.value_error(where, f"got an unexpected argument '{name}'")


def _in_precision(network: Cell, model_type, keep_norms: bool, level: str) -> Cell:
    if model_type is dtypes.float16:
        network.to_float(dtypes.float16)
        if keep_norms:
            _do_keep_batchnorm_fp32(network)
        return network
    if not keep_norms and level == "O2":
        return network.to_float(dtypes.float16)
    if level in ("O2", "O3"):
        return network
    return auto_mixed_precision(network, level)


def _micro_size(network: Cell) -> int:
    """Into how many parts a network with `GradAccumulationCell` cuts a batch; 1 without."""
    for _, cell in network.cells_and_names():
        if isinstance(cell, nn.GradAccumulationCell):
            return cell.micro_size
    return 1


def build_train_network(
    network: Cell, optimizer, loss_fn=None, level: str = "O0", boost_level: str = "O0", **kwargs
) -> Cell:
    """The Cell of one training step in mixed precision: network, loss, loss scale, optimizer.

    `level`: as `auto_mixed_precision`; O2 scales the loss dynamically. Options: `cast_model_type`,
    `keep_batchnorm_fp32`, `loss_scale_manager` override what the level says. `boost_level`: as `Model`.
    Errors: TypeError for an optimizer or loss that is none, ValueError for unknown levels and options.
    """
    where = "build_train_network"
    if not isinstance(optimizer, nn.Optimizer):
        raise errors.type_error(where, f"optimizer must be an Optimizer, but got {type(optimizer).__name__}")
    if not isinstance(level, str):
        raise errors.type_error(where, f"level must be a str, but got {type(level).__name__}")
    if level not in _LEVELS:
        raise errors.value_error(where, f"level must be one of {list(_LEVELS)}, but got {level!r}")
    check_boost_level(where, boost_level)
    _check_options(kwargs)
    model_type, keep_norms, scaled = _CONFIG[level]
    model_type = kwargs.get("cast_model_type", model_type)
    keep_norms = kwargs.get("keep_batchnorm_fp32", keep_norms)
    manager = kwargs.get("loss_scale_manager", DynamicLossScaleManager() if scaled else None)
    network = _in_precision(network, model_type, keep_norms, level)
    if loss_fn:
        if not isinstance(loss_fn, Cell):
            raise errors.type_error(where, f"loss_fn must be a Cell, but got {type(loss_fn).__name__}")
        short = model_type in _SHORT_TYPES or getattr(network, "_amp_level", None) in ("O2", "O3", "auto")
        network = (_CastWithLossCell if short else nn.WithLossCell)(network, loss_fn)
    update = manager.get_update_cell() if manager is not None else None
    if update is not None:
        return nn.TrainOneStepWithLossScaleCell(network, optimizer, scale_sense=update).set_train()
    sens = manager.get_loss_scale() if manager is not None else None
    parts = _micro_size(network)
    if parts > 1:
        sens = (1.0 if sens is None else sens) / parts
    return nn.TrainOneStepCell(network, optimizer, sens).set_train()
