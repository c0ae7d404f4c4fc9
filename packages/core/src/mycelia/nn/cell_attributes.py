"""What assignments to attributes of a Cell do: Parameters, sub-cells and buffers get into tables."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.capture import cache_invalidation
from mycelia.engine.tensors.tensor import Parameter, ParameterTuple, Tensor


class Buffer:
    """A Tensor that `cell.name = Buffer(tensor)` makes a buffer of the cell."""

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        self.data, self.persistent = data, persistent


class CellAttributes:
    """The part of `Cell` that takes, finds and forgets attributes."""

    def __setattr__(self, name: str, value) -> None:
        d = self.__dict__
        if isinstance(value, Parameter):
            self._set_parameter(name, value)
        elif isinstance(value, CellAttributes):
            self._set_cell(name, value)
        elif isinstance(value, ParameterTuple):
            self._set_parameter_tuple(name, value)
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], Parameter):
            self._set_parameter_list(name, value)
        elif "_params" in d and name in d["_params"]:
            self._overwrite_parameter(name, value)
        elif "_buffers" in d and name in d["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise errors.type_error(
                    type(self).__name__,
                    f"attribute '{name}' is a buffer and cannot become {type(value).__name__}",
                )
            d["_buffers"][name] = d[name] = value
        elif "_cells" in d and name in d["_cells"]:
            if value is not None:
                raise errors.type_error(
                    type(self).__name__,
                    f"attribute '{name}' is a Cell and can only become another Cell or None",
                )
            d["_cells"][name] = None
            d[name] = None
        elif name == "requires_grad":
            self.set_grad(value)
        elif type(value) is Buffer:
            self.register_buffer(name, value.data, value.persistent)
        else:
            if name == "training":
                cache_invalidation.changed()
            object.__setattr__(self, name, value)

    def _require_init(self, name: str) -> dict:
        d = self.__dict__
        if "_params" not in d:
            raise errors.error(
                errors.MyceliaAttributeError,
                type(self).__name__,
                f"cannot assign '{name}' before super().__init__() was called",
            )
        return d

    def _set_parameter(self, name: str, value: Parameter) -> None:
        d = self._require_init(name)
        if name in d["_cells"]:
            raise errors.type_error(type(self).__name__, f"attribute '{name}' is already a Cell")
        if value._unnamed:
            value.name = name
            value._unnamed = False
        d["_params"][name] = value
        d[name] = value
        self._changed()

    def _set_parameter_tuple(self, name: str, value: ParameterTuple) -> None:
        d = self._require_init(name)
        seen: dict[str, Parameter] = {}
        for parameter in value:
            if parameter._unnamed:
                parameter.name = f"Parameter${len(d['_params']) + 1}"
                parameter._unnamed = False
            self._check_new_name(seen, parameter)
            d["_params"].setdefault(parameter.name, parameter)
        d[name] = value

    def _set_parameter_list(self, name: str, value) -> None:
        """A list of Parameters stays a plain value, but its names must differ."""
        seen: dict[str, Parameter] = {}
        for parameter in value:
            if isinstance(parameter, Parameter) and not parameter._unnamed:
                self._check_new_name(seen, parameter)
        self.__dict__[name] = value

    def _check_new_name(self, seen: dict, parameter: Parameter) -> None:
        if seen.setdefault(parameter.name, parameter) is not parameter:
            raise errors.value_error(
                type(self).__name__, f"two parameters are named '{parameter.name}'", hint="names must differ"
            )

    def _set_cell(self, name: str, value: CellAttributes) -> None:
        d = self._require_init(name)
        if name in d["_params"]:
            raise errors.error(
                errors.MyceliaKeyError, type(self).__name__, f"attribute '{name}' is already a Parameter"
            )
        if d["_auto_prefix"]:
            value.update_parameters_name(name + ".")
        d["_cells"][name] = value
        d[name] = value
        self._changed()

    def _overwrite_parameter(self, name: str, value) -> None:
        if value is None:
            self._params[name] = None
            self.__dict__[name] = None
        elif isinstance(value, Tensor):
            parameter = self._params[name]
            place = parameter._tape_place
            parameter.set_data(value)
            parameter._tape_place = place
        else:
            raise errors.type_error(
                type(self).__name__,
                f"attribute '{name}' is a Parameter and cannot become {type(value).__name__}",
            )

    def __getattr__(self, name: str):
        for table in ("_params", "_buffers", "_cells"):  # hooks may put something there directly
            found = self.__dict__.get(table, {}).get(name)
            if found is not None:
                return found
        advice = "" if "_params" in self.__dict__ else " Was super().__init__() called?"
        raise AttributeError(
            f"The '{type(self).__name__}' object has no attribute '{name}'.{advice}", name=name, obj=self
        )

    def __delattr__(self, name: str) -> None:
        for table in (self._params, self._cells, self._buffers):
            table.pop(name, None)
        self._changed()
        object.__delattr__(self, name)
