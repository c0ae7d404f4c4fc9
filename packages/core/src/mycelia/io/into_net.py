"""Values of a checkpoint into the Parameters of a net, all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import ignored, log
from mycelia.engine.communication.share import GridShare
from mycelia.io import provenance

_log = log.logger(__name__)

#: Called with the names of the net and of the dict without a partner, whenever values were loaded.
listeners: list[Callable[[list[str], list[str]], None]] = []


@ignored.arguments(remove_redundancy="a file has all its Parameters")
def load_param_into_net(net, parameter_dict, strict_load=False, remove_redundancy=False):
    """Gives the parameters of a Cell the values of the same names: (names of the net,
    of the dict) that found no partner.

    Parameters that only other stages of a pipeline have stay without values.
    A Parameter that is a part of a state, which an optimizer divides among processes, takes its part of a
    whole value; of a state of which it has no element there is nothing in files of parts.
    Unless `strict_load`: a float (or a signed, or an unsigned integer) width that differs is converted,
    trailing dimensions of size 1 are dropped, and when names of the net are missing,
    a prefix that all their partners in the dict share ('net.' of 'net.conv.weight') is taken off.
    Names without a partner are logged, not errors.
    Errors: TypeError for wrong arguments; RuntimeError that lists every parameter whose shape or dtype does
    not fit, and what is missing; the net is unchanged then.
    """
    if not hasattr(net, "parameters_and_names"):
        raise TypeError(
            f"For 'load_param_into_net', the argument 'net' should be a Cell, but got {type(net)}."
        )
    if not isinstance(parameter_dict, dict):
        raise TypeError(
            "For 'load_param_into_net', the argument 'parameter_dict' should be a dict, "
            f"but got {type(parameter_dict)}."
        )
    for name, value in parameter_dict.items():
        if not isinstance(name, str) or not (isinstance(value, str) or _is_parameter(value)):
            raise TypeError(
                "For 'parameter_dict', the element in the argument 'parameter_dict' should be a 'str' and "
                f"'Parameter' , but got {type(name)} and {type(value)}."
            )
    targets = {parameter.name: parameter for _, parameter in net.parameters_and_names()}
    partner = {name: name for name in targets if name in parameter_dict}
    if not strict_load:
        partner |= _partners_without_prefix([name for name in targets if name not in partner], parameter_dict)

    values, problems = {}, []
    elsewhere = {name for name, target in targets.items() if target.elsewhere}
    for name, source in partner.items():
        if name in elsewhere:
            continue
        value, problem = _fitted(targets[name], parameter_dict[source], strict_load)
        values[name] = value
        if problem:
            problems.append(f"{name}: {problem}")
    # What the dict holds under a name that had its prefix taken off counts as not loaded: so MindSpore
    # reports it.
    has_none = {name for name, target in targets.items() if target.share is not None and not target.size}
    param_not_load = [name for name in targets if name not in partner and name not in elsewhere | has_none]
    ckpt_not_load = [name for name in parameter_dict if name not in targets]
    if problems:
        raise RuntimeError(_mismatch(problems, param_not_load, ckpt_not_load))
    for name, value in values.items():
        targets[name].set_data(value)
        provenance.mark([targets[name]], provenance.source_of(parameter_dict[partner[name]]))
    for listener in listeners:
        listener(param_not_load, ckpt_not_load)
    if param_not_load:
        _log.warning(
            "For 'load_param_into_net', %d parameters in the 'net' are not loaded, because they are not in "
            "the 'parameter_dict', please check whether the network structure is consistent when training "
            "and loading checkpoint.",
            len(param_not_load),
        )
        _log.warning("%s are not loaded.", param_not_load)
    return param_not_load, ckpt_not_load


def _is_parameter(value: Any) -> bool:
    from mycelia.engine.tensors.tensor import Parameter

    return isinstance(value, Parameter)


def _partners_without_prefix(missing: list[str], parameter_dict: Mapping[str, Any]) -> dict[str, str]:
    """Net name -> dict name for the prefix that finds most of the missing names; the prefix ends at a dot."""
    found: dict[str, dict[str, str]] = {}
    wanted = set(missing)
    for source in parameter_dict:
        at = source.find(".") + 1
        while at:
            if source[at:] in wanted:
                found.setdefault(source[:at], {})[source[at:]] = source
            at = source.find(".", at) + 1
    if not found:
        return {}
    prefix = max(found, key=lambda p: len(found[p]))
    _log.warning("For 'load_param_into_net', remove parameter prefix name: %s, continue to load.", prefix)
    return found[prefix]


_FAMILIES = (
    ("float16", "bfloat16", "float32", "float64"),
    ("int8", "int16", "int32", "int64"),
    ("uint8", "uint16", "uint32", "uint64"),
)


def _fitted(target: Any, value: Any, strict: bool) -> tuple[Any, str]:
    """The value as the target takes it, or why it does not."""
    from mycelia.engine import ops

    if isinstance(value, str):
        return None, f"the net has {_type_text(target)}, the checkpoint has a text"
    shape, wanted = tuple(value.shape), tuple(target.shape)
    own = getattr(value, "share", None)
    if isinstance(own, GridShare) and own != target.share:
        return None, _other_part(target, own)
    if isinstance(target.share, GridShare) and own is None and shape == target.share.shape:
        value = _C.from_array(np.ascontiguousarray(target.share.of(value._bits())), value.dtype, False)
        shape = wanted
    elif target.share is not None and shape == target.share.shape:
        begin, end = target.share.place
        part = ops.reshape(value, (-1,))[begin:end]
        missing = target.share.length - (end - begin)
        part = ops.cat([part, ops.zeros((missing,), value.dtype)]) if missing else part
        value, shape = ops.reshape(part, wanted), wanted
    if shape != wanted:
        extra = shape[len(wanted) :]
        if strict or shape[: len(wanted)] != wanted or any(n != 1 for n in extra):
            return None, f"the net has shape {wanted}, the checkpoint {shape}"
    if value.dtype != target.dtype:
        names = {value.dtype.name, target.dtype.name}
        if strict or not any(names <= set(family) for family in _FAMILIES):
            return None, f"the net has dtype {_type_text(target)}, the checkpoint {_type_text(value)}"
        _log.warning(
            "The type of %s:%s in 'parameter_dict' is different from the type of it in 'net':%s, then it "
            "is converted. May consume additional memory and time",
            target.name,
            value.dtype,
            target.dtype,
        )
        value = ops.cast(value, target.dtype)
    return ops.reshape(value, wanted) if shape != wanted else value, ""


def _other_part(target: Any, own: GridShare) -> str:
    """Why a part of one training is none of another's."""
    at = ", ".join(f"{s.start}:{s.stop}" for s in own.place(own.rank))
    had = f"the checkpoint has the part [{at}] of {list(own.shape)}, of rank {own.rank} of {own.size}"
    if target.share is not None:
        return f"{had}, the net another one: transform_checkpoints cuts anew by two strategy files"
    way = "transform_checkpoints, or load_distributed_checkpoint, puts parts together by a strategy file"
    return f"the net has all of {_type_text(target)}, {had}: {way}"


def _type_text(tensor: Any) -> str:
    return f"{tensor.dtype.name}{list(tensor.shape)}"


def _mismatch(problems: list[str], missing: list[str], extra: list[str]) -> str:
    lines = ["For 'load_param_into_net', these parameters do not fit (nothing was loaded):"]
    lines += [f"  {problem}" for problem in problems]
    if missing:
        lines.append(f"  not in the checkpoint: {', '.join(missing)}")
    if extra:
        lines.append(f"  not in the net: {', '.join(extra)}")
    lines.append(
        "Check that the checkpoint belongs to this network and that both were built with the same sizes."
    )
    return "\n".join(lines)


__all__ = ["load_param_into_net"]
