"""The state of a Cell as a dict, `load_state_dict`, and what converts all Parameters and buffers."""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import DType
from mycelia.engine.ops.control_flow.device import memory_of
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell_hooks import hook_keys

_EXTRA_STATE = "_extra_state"


class IncompatibleKeys(namedtuple("_IncompatibleKeys", "missing_keys unexpected_keys")):
    """What `load_state_dict` found missing or did not expect."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return "_" + super().__repr__()

    __str__ = __repr__


class StateHookHandle:
    """What the hooks of `state_dict` and `load_state_dict` return: `remove()` takes the hook away again."""

    def __init__(self, table: dict, key: int):
        self._table, self._key = table, key

    def remove(self) -> None:
        self._table.pop(self._key, None)


class CellState:
    """Part of `Cell`."""

    def _state_hooks(self, kind: str) -> OrderedDict:
        return self.__dict__.setdefault("_state_hook_tables", {}).setdefault(kind, OrderedDict())

    def _add_state_hook(self, kind: str, hook: Callable) -> StateHookHandle:
        table, key = self._state_hooks(kind), next(hook_keys)
        table[key] = hook
        return StateHookHandle(table, key)

    def register_state_dict_pre_hook(self, hook: Callable) -> StateHookHandle:
        """Call ``hook(cell, prefix, keep_vars)`` before `state_dict`."""
        return self._add_state_hook("before_save", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> StateHookHandle:
        """Call ``hook(cell, state_dict, prefix, local_metadata)`` after `state_dict`; it returns None."""
        return self._add_state_hook("after_save", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> StateHookHandle:
        """Call ``hook(cell, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)`` before a cell loads.
        """
        return self._add_state_hook("before_load", hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> StateHookHandle:
        """Call ``hook(cell, incompatible_keys)`` after a cell and those below it loaded; it returns None and
        may change the two lists.
        """
        return self._add_state_hook("after_load", hook)

    def get_extra_state(self):
        """What else belongs to the state dict; a subclass defines it together with `set_extra_state`."""
        raise RuntimeError(f"{type(self).__name__} does not define get_extra_state()")

    def set_extra_state(self, state) -> None:
        """Take back what `get_extra_state` returned."""
        raise RuntimeError(f"{type(self).__name__} does not define set_extra_state()")

    def _own_state(self):
        hidden = self.__dict__.get("_transient_buffers", ())
        for name, value in (*self._params.items(), *self._buffers.items()):
            if value is not None and name not in hidden:
                yield name, value

    def _has_extra_state(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(CellState, method)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_state():
            destination[prefix + name] = value
        if self._has_extra_state("get_extra_state"):
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args, destination: dict | None = None, prefix: str = "", keep_vars: bool = False):
        """Path -> Parameter or persistent buffer, of this cell and all below it, as an OrderedDict.

        The values are the Parameters themselves. Errors: TypeError for arguments of other types,
        RuntimeError when a post hook returns something.
        """
        if args:
            warnings.warn("state_dict: give destination, prefix and keep_vars by name", stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        for name, value, kind in (
            ("destination", destination, (dict, type(None))),
            ("prefix", prefix, str),
            ("keep_vars", keep_vars, bool),
        ):
            if not isinstance(value, kind):
                raise errors.type_error("state_dict", f"{name} must not be a {type(value).__name__}")
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata: dict = {}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in tuple(self._state_hooks("before_save").values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, cell in self._cells.items():
            if cell is not None:
                cell.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in tuple(self._state_hooks("after_save").values()):
            if hook(self, destination, prefix, metadata) is not None:
                raise RuntimeError("a post hook of state_dict must return None")
        return destination

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Take this cell's own part of `state_dict`; what does not fit goes into the three lists."""
        for hook in tuple(self._state_hooks("before_load").values()):
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = dict(self._own_state())
        for name, value in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            given = state_dict[key]
            if not isinstance(given, Tensor):
                error_msgs.append(f'"{key}" must be a Tensor, but got {type(given)}')
            elif given.shape != value.shape:
                error_msgs.append(
                    f"size mismatch for {key}: the given value has the shape {given.shape}, "
                    f"the one of the cell {value.shape}."
                )
            else:
                value.assign_value(given if given.dtype is value.dtype else given.astype(value.dtype))
        extra = prefix + _EXTRA_STATE
        if self._has_extra_state("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if not strict:
            return
        for key in state_dict:
            if key.startswith(prefix) and key != extra:
                first, *rest = key[len(prefix) :].split(".", 1)
                if first not in (self._cells if rest else own):
                    unexpected_keys.append(key)

    def load_state_dict(self, state_dict: Mapping, strict: bool = True) -> IncompatibleKeys:
        """Overwrite Parameters and persistent buffers by path; returns the keys that found no partner.

        Errors: TypeError when `state_dict` is no mapping, RuntimeError for shapes that differ and, with
        `strict`, for missing or unexpected keys.
        """
        if not isinstance(state_dict, Mapping):
            raise errors.type_error(
                "load_state_dict", f"state_dict must be a dict, but got {type(state_dict).__name__}"
            )
        metadata = getattr(state_dict, "_metadata", None)
        missing: list[str] = []
        unexpected: list[str] = []
        messages: list[str] = []

        def load(cell, part: dict, prefix: str) -> None:
            local = {} if metadata is None else metadata.get(prefix[:-1], {})
            cell._load_from_state_dict(part, prefix, local, True, missing, unexpected, messages)
            for name, child in cell._cells.items():
                if child is not None:
                    path = f"{prefix}{name}."
                    load(child, OrderedDict((k, v) for k, v in part.items() if k.startswith(path)), path)
            found = IncompatibleKeys(missing, unexpected)
            for hook in tuple(cell._state_hooks("after_load").values()):
                if hook(cell, found) is not None:
                    raise RuntimeError("a post hook of load_state_dict must return None")

        load(self, OrderedDict(state_dict), "")
        if strict:
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    named = ", ".join(f'"{k}"' for k in keys)
                    messages.insert(0, f"{what} key(s) in state_dict: {named}. ")
        if messages:
            lines = "\n\t".join(messages)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return IncompatibleKeys(missing, unexpected)

    # ---- conversion ----------------------------------------------------------------------------------------

    def _convert(self, change: Callable[[Tensor], Tensor], recurse: bool = True):
        if recurse:
            for cell in self._cells.values():
                if cell is not None and cell is not self:
                    cell._convert(change)
        for parameter in self._params.values():
            if parameter is not None:
                parameter._assign(change(parameter)._detach())
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = self.__dict__[name] = change(buffer)
        self._changed()
        return self

    def to(self, *args, **kwargs):
        """Cast floating and complex Parameters and buffers, bring all of them to a device: ``to(dtype)``,
        ``to(device, dtype)``, ``to(tensor)``; returns the cell.

        Errors: TypeError for a dtype that is neither, RuntimeError for a device that no backend serves.
        """
        device, dtype = _target_of(args, kwargs)
        if dtype is not None and not (dtype.is_floating or dtype.is_complex):
            raise errors.type_error("Cell.to", f"dtype must be floating or complex, but got {dtype}")
        if device is not None:
            memory_of("Cell.to", device)

        def change(x):
            floating = x.dtype.is_floating or x.dtype.is_complex
            return x.to(device=device, dtype=dtype if floating else None)

        return self._convert(change)

    def to_empty(self, *, device=None, recurse: bool = True):
        """New memory for all Parameters and buffers, without values that mean anything; returns the cell."""
        memory = 0 if device is None else memory_of("Cell.to_empty", device)
        from mycelia.engine import _C

        return self._convert(lambda x: _C.empty(x.dtype, x.shape, memory), recurse)


def _by_dtype(dtype, non_blocking=False, *, device=None):
    return device, dtype


def _by_tensor(tensor, non_blocking=False):
    return None, tensor.dtype


def _by_device(device=None, dtype=None, non_blocking=False):
    return device, dtype


def _target_of(args: tuple, kwargs: dict) -> tuple[str | None, DType | None]:
    """Device and dtype that a call of `Cell.to` asks for."""
    first = args[0] if args else None
    form = _by_dtype if isinstance(first, DType) else _by_tensor if isinstance(first, Tensor) else _by_device
    if not args and "tensor" in kwargs:
        form = _by_tensor
    try:
        given = inspect.signature(form).bind(*args, **kwargs)
    except TypeError as e:
        raise errors.type_error("Cell.to", str(e)) from None
    device, dtype = form(*given.args, **given.kwargs)
    if device is not None and not isinstance(device, str):
        raise errors.type_error("Cell.to", f"device must be a str, but got {type(device).__name__}")
    if dtype is not None and not isinstance(dtype, DType):
        raise errors.type_error("Cell.to", f"dtype must be a dtype, but got {type(dtype).__name__}")
    return device, dtype
