"""The Parameters and buffers of a Cell and of the cells below it, by path."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Parameter, Tensor

if TYPE_CHECKING:
    from mycelia.nn.cell import Cell


class CellTree:
    """The part of `Cell` that goes through the tree of cells, and puts something into it by name."""

    def parameters_and_names(
        self, name_prefix: str = "", expand: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(path, Parameter) of this cell, then of its sub-cells in order; each Parameter once."""
        seen: set[int] = set()
        cells = self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]
        for path, cell in cells:
            for name, parameter in cell._params.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{path}.{name}" if path else name), parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """All Parameters; with expand=False only this cell's own."""
        for _, parameter in self.parameters_and_names(expand=expand):
            yield parameter

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The Parameters with requires_grad=True, in order."""
        return [p for p in self.get_parameters(expand=recurse) if p.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The Parameters with requires_grad=False, in order."""
        return [p for p in self.get_parameters(expand=recurse) if not p.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict:
        """Parameter name -> Parameter."""
        return OrderedDict((p.name, p) for p in self.get_parameters(expand=recurse))

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name every Parameter `prefix` + its path.  Raises ValueError for a prefix with odd characters."""
        if not isinstance(prefix, str):
            raise errors.type_error(
                "update_parameters_name", f"prefix must be a str, but got {type(prefix).__name__}"
            )
        if prefix and not re.fullmatch(r"[0-9a-zA-Z_$./-]+", prefix):
            raise errors.value_error(
                "update_parameters_name", f"prefix {prefix!r} may hold letters, digits and _ $ . / - only"
            )
        for path, parameter in self.parameters_and_names(expand=recurse):
            parameter.name = prefix + path

    def insert_param_to_cell(
        self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True
    ) -> None:
        """Add a Parameter under `param_name`.

        Raises TypeError or KeyError for a bad name, or one that is an attribute already.
        """
        if not param_name or (check_name_contain_dot and "." in param_name):
            raise errors.error(
                errors.MyceliaKeyError,
                "insert_param_to_cell",
                f"param_name must be a name without '.', but got {param_name!r}",
            )
        if hasattr(self, param_name) and param_name not in self._params:
            raise errors.error(
                errors.MyceliaKeyError,
                "insert_param_to_cell",
                f"the cell has an attribute '{param_name}' already",
            )
        if param is None:
            self._params[param_name] = self.__dict__[param_name] = None
            return
        if not isinstance(param, Parameter):
            raise errors.type_error(
                "insert_param_to_cell", f"param must be a Parameter, but got {type(param).__name__}"
            )
        self._set_parameter(param_name, param)

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict:
        """Parameter -> itself: values are set when Parameters are made."""
        del auto_parallel_mode  # Parameters are whole
        return {p: p for p in self.get_parameters()}

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a Tensor that belongs to the state but is no Parameter.
        Raises KeyError or TypeError for bad arguments.
        """
        if not isinstance(name, str):
            raise errors.type_error("register_buffer", f"a buffer name should be a string, but got {name!r}")
        if not name or "." in name:
            raise errors.error(
                errors.MyceliaKeyError,
                "register_buffer",
                f'a name must not be empty or contain ".", but got {name!r}',
            )
        if hasattr(self, name) and name not in self._buffers:
            raise errors.error(
                errors.MyceliaKeyError, "register_buffer", f"attribute '{name}' exists already"
            )
        if tensor is not None and not isinstance(tensor, Tensor):
            raise errors.type_error(
                "register_buffer", f"tensor must be a Tensor or None, but got {type(tensor).__name__}"
            )
        self._buffers[name] = self.__dict__[name] = tensor
        hidden = self.__dict__.setdefault("_transient_buffers", set())
        hidden.discard(name) if persistent else hidden.add(name)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path. Raises AttributeError when there is none."""
        path, _, name = target.rpartition(".")
        cell = self.get_sub_cell(path)
        if name not in cell._buffers:
            message = f"has no attribute '{name}' that is a buffer"
            raise errors.error(errors.MyceliaAttributeError, type(cell).__name__, message)
        return cell._buffers[name]

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(path, buffer) pairs, each buffer once unless `remove_duplicate` is False."""
        seen: set[int] = set()
        for path, cell in self.cells_and_names(name_prefix=prefix) if recurse else [(prefix, self)]:
            for name, buffer in cell._buffers.items():
                if buffer is not None and id(buffer) not in seen:
                    if remove_duplicate:
                        seen.add(id(buffer))
                    yield (f"{path}.{name}" if path else name), buffer

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def cells_and_names(self, cells: set | None = None, name_prefix: str = "") -> Iterator[tuple[str, Cell]]:
        """(path, Cell) of this cell and all below it, depth first; each Cell once."""
        seen = set() if cells is None else cells
        if id(self) in seen:
            return
        seen.add(id(self))
        yield name_prefix, self
        for name, cell in self._cells.items():
            if cell is not None:
                yield from cell.cells_and_names(seen, f"{name_prefix}.{name}" if name_prefix else name)

    def cells(self):
        """The direct sub-cells."""
        return self.name_cells().values()

    def name_cells(self) -> OrderedDict:
        """Attribute name -> direct sub-cell."""
        return OrderedDict((n, c) for n, c in self._cells.items() if c is not None)

    def get_sub_cell(self, target: str) -> Cell:
        """The cell at a dotted path. Raises AttributeError when there is none."""
        cell = self
        for part in filter(None, target.split(".")):
            cell = getattr(cell, part, None)
            if not isinstance(cell, CellTree):
                raise errors.error(
                    errors.MyceliaAttributeError, type(self).__name__, f"there is no sub-cell '{target}'"
                )
        return cell

    def insert_child_to_cell(self, child_name: str, child_cell: Cell) -> None:
        """Add a sub-cell. Raises KeyError for a bad or used name, TypeError when it is no Cell."""
        if not isinstance(child_name, str):
            raise errors.type_error(
                "insert_child_to_cell", f"child_name must be a str, but got {type(child_name).__name__}"
            )
        if not child_name or "." in child_name:
            raise errors.error(
                errors.MyceliaKeyError,
                "insert_child_to_cell",
                f"child_name must be a name without '.', but got {child_name!r}",
            )
        if hasattr(self, child_name) and child_name not in self._cells:
            raise errors.error(
                errors.MyceliaKeyError, "insert_child_to_cell", f"attribute '{child_name}' exists already"
            )
        if not isinstance(child_cell, CellTree) and child_cell is not None:
            raise errors.type_error(
                "insert_child_to_cell", f"child_cell must be a Cell, but got {type(child_cell).__name__}"
            )
        if child_cell is None:
            self._cells[child_name] = self.__dict__[child_name] = None
        else:
            # Parameters keep their names, as in MindSpore: only assignment as an attribute adds the path.
            self._cells[child_name] = self.__dict__[child_name] = child_cell
        self._changed()

    def apply(self, fn: Callable[[Cell], None]) -> Cell:
        """Call `fn` on every sub-cell, then on this cell; returns this cell."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    def check_names(self) -> None:
        """Raise ValueError when two Parameters have one name."""
        seen: dict[str, str] = {}
        for path, parameter in self.parameters_and_names():
            if parameter.name in seen:
                raise errors.value_error(
                    type(self).__name__,
                    f"parameters at '{seen[parameter.name]}' and '{path}' are both named '{parameter.name}'",
                )
            seen[parameter.name] = path
