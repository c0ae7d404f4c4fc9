"""The operators that layers of MindSpore hold as attributes: Cells derived from layers call them."""

from __future__ import annotations


class Part:
    """An attribute that is made when it is asked for: `make(cell)`, which is kept unless `keep` is false.

    An assignment to it replaces it.
    """

    def __init__(self, make, keep: bool = True) -> None:
        self._make, self._keep = make, keep

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, cell, owner: type | None = None):
        if cell is None:
            return self
        made = vars(cell).get(self._name)
        if made is None:
            made = self._make(cell)
            if self._keep:
                vars(cell)[self._name] = made
        return made


def has_strategy(cell, *names: str) -> bool:
    """Whether the user has given one of these operators of a Cell a strategy (`Primitive.shard`)."""
    return any("_strategies" in getattr(vars(cell).get(name), "__dict__", ()) for name in names)


def operator(name: str, *arguments, **options) -> Part:
    """The primitive ``ops.<name>(*arguments, **options)``; an option that is a function is called with the
    Cell.
    """

    def make(cell):
        from mycelia import ops

        given = {key: value(cell) if callable(value) else value for key, value in options.items()}
        return getattr(ops, name)(*(a(cell) if callable(a) else a for a in arguments), **given)

    return Part(make)
