"""Cells that hold cells: `SequentialCell`, `CellList`, `CellDict`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from mycelia.engine.base import errors
from mycelia.nn.cell import Cell
from mycelia.nn.parts import Part


class _Ordered(Cell):
    """Cells numbered from 0, with list behaviour."""

    def _name(self) -> str:
        return type(self).__name__

    def _check(self, cell) -> Cell:
        if not isinstance(cell, Cell):
            raise errors.type_error(
                self._name(), f"every member must be a Cell, but got {type(cell).__name__}"
            )
        return cell

    def _index(self, index: int) -> int:
        if isinstance(index, bool) or not isinstance(index, int):
            raise errors.type_error(self._name(), f"the index must be an int, but got {type(index).__name__}")
        n = len(self)
        if not -n <= index < n:
            raise errors.index_error(self._name(), f"index {index} is out of range [{-n}, {n})")
        return index % n

    def _replace_all(self, cells: list[Cell]) -> None:
        """Renumber: the members become `cells`, their parameters are named by the new positions."""
        for name in list(self._cells):
            del self._cells[name]
            self.__dict__.pop(name, None)
        for i, cell in enumerate(cells):
            self._cells[str(i)] = self.__dict__[str(i)] = cell
            if self._auto_prefix:
                cell.update_parameters_name(f"{i}.")
        self._changed()

    def _members(self) -> list[Cell]:
        return list(self._cells.values())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(self._members()[index])
        if isinstance(index, str):
            return self._cells[index]
        return self._members()[self._index(index)]

    def __setitem__(self, index, cell) -> None:
        name = list(self._cells)[self._index(index)]
        self._set_cell(name, self._check(cell))

    def __delitem__(self, index) -> None:
        members = self._members()
        if isinstance(index, slice):
            del members[index]
        else:
            del members[self._index(index)]
        self._replace_all(members)

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self):
        return iter(self._members())

    def append(self, cell: Cell):
        """Add a cell at the end; returns self. Raises TypeError when it is no Cell."""
        self._set_cell(str(len(self)), self._check(cell))
        return self

    def insert(self, index: int, cell: Cell) -> None:
        """Put a cell before position `index`."""
        members = self._members()
        n = len(members)
        if not -n <= index <= n:
            raise errors.index_error(self._name(), f"index {index} is out of range [{-n}, {n}]")
        members.insert(index, self._check(cell))
        self._replace_all(members)

    def set_grad(self, flag: bool = True) -> Cell:
        """Mark this cell and its own for gradients, which need no mark here."""
        for cell in self:
            cell.set_grad(flag)
        return super().set_grad(flag)

    def extend(self, cells: Iterable[Cell]):
        """Add several cells at the end; returns self."""
        if not isinstance(cells, (list, tuple, _Ordered)):
            raise errors.type_error(
                self._name(), f"cells must be a list of Cells, but got {type(cells).__name__}"
            )
        for cell in cells:
            self.append(cell)
        return self


class SequentialCell(_Ordered):
    """Cells called one after the other:
    ``SequentialCell(a, b)``, a list of cells, or an OrderedDict of them.
    """

    cell_list = Part(lambda cell: list(cell._cells.values()), keep=False)

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = tuple(args[0])
        elif len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, cell in args[0].items():
                self._set_cell(name, self._check(cell))
            args = ()
        for i, cell in enumerate(args):
            self._set_cell(str(i), self._check(cell))

    def construct(self, x):
        for cell in self._cells.values():
            x = cell(x)
        return x


class CellList(_Ordered):
    """A list of cells; calling it is not defined: index or iterate it in `construct`."""

    def __init__(self, *args, **kwargs):
        super().__init__(auto_prefix=kwargs.get("auto_prefix", True))
        cells = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple, CellList)) else args
        if any(isinstance(cell, CellDict) for cell in cells):
            raise errors.type_error("CellList", "a member can not be a CellDict")
        self.extend(cells)

    def construct(self, *inputs):
        raise errors.error(
            errors.NotSupportedError, "CellList", "a list of cells cannot be called", hint="call its members"
        )


class CellDict(Cell):
    """A dict of cells, by name."""

    def __init__(self, cells=None):
        super().__init__()
        if cells is not None:
            self.update(cells)

    def __getitem__(self, key: str) -> Cell:
        return self._cells[key]

    def __setitem__(self, key: str, cell: Cell) -> None:
        if not isinstance(key, str):
            raise errors.type_error("CellDict", f"a key must be a str, but got {type(key).__name__}")
        if not key or "." in key:
            raise errors.error(
                errors.MyceliaKeyError, "CellDict", f"a key must be a text without '.', but got {key!r}"
            )
        if key not in self._cells and hasattr(self, key):
            raise errors.error(
                errors.MyceliaKeyError, "CellDict", f"the key {key!r} is the name of an attribute of Cells"
            )
        if not isinstance(cell, Cell) or isinstance(cell, (CellDict, CellList, SequentialCell)):
            raise errors.type_error(
                "CellDict", f"every member must be a Cell and no container, but got {type(cell).__name__}"
            )
        self._set_cell(key, cell)

    def __delitem__(self, key: str) -> None:
        del self._cells[key]
        self.__dict__.pop(key, None)
        self._changed()

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self):
        return iter(self._cells)

    def __contains__(self, key) -> bool:
        return key in self._cells

    def clear(self) -> None:
        """Remove all members."""
        for key in list(self._cells):
            del self[key]

    def pop(self, key: str) -> Cell:
        """Remove a member and return it."""
        cell = self._cells[key]
        del self[key]
        return cell

    def keys(self):
        return self._cells.keys()

    def values(self):
        return self._cells.values()

    def items(self):
        return self._cells.items()

    def update(self, cells) -> None:
        """Add members from a dict, a CellDict or (name, Cell) pairs."""
        if not isinstance(cells, Iterable):
            raise errors.type_error(
                "CellDict.update", f"cells must be pairs of name and Cell, but got {type(cells).__name__}"
            )
        for i, pair in enumerate(cells.items() if hasattr(cells, "items") else cells):
            if not isinstance(pair, Iterable):
                raise errors.type_error(
                    "CellDict.update", f"member {i} must be a pair, but got {type(pair).__name__}"
                )
            pair = tuple(pair)
            if len(pair) != 2:
                raise errors.value_error("CellDict.update", f"member {i} must be a pair, but got {pair}")
            self[pair[0]] = pair[1]

    def construct(self, *inputs):
        raise errors.error(
            errors.NotSupportedError, "CellDict", "a dict of cells cannot be called", hint="call its members"
        )
