"""How an op runs on a batch of examples at once: the option `batch` of a block, for `vmap`.

Elementwise ops have a rule by what they are. Others name a family below, or set their own by `@x.batch`:
``(call) -> outputs``, given a `Call`. What has no rule runs example by example, and the results are stacked:
of an op that nothing is known about nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.ops.define import LIST, OpDef, find

Tensor = _C.Tensor


class Call:
    """A call of an op on a batch: `operands` flat, those marked in `batched` with the batch axis in front;
    `in_types` and `out_types` are those of one example.
    """

    def __init__(self, op, operands, batched, counts, attrs, in_types, out_types, size):
        self.op, self.operands, self.batched, self.counts = op, operands, batched, counts
        self.attrs, self.in_types, self.out_types, self.size = attrs, in_types, out_types, size

    def run(self, operands: list, **attrs: Any) -> tuple:
        """The op on other operands and attributes; always a tuple."""
        definition = self.op.definition
        inputs = operands
        if definition.params and definition.params[0][1] == LIST:
            inputs = [operands[: self.counts[0]], *operands[self.counts[0] :]]
        found = self.op(*inputs, **{**self.attrs, **attrs})
        return found if isinstance(found, tuple) else (found,)

    def shaped(self, outputs: tuple) -> list[Tensor]:
        """`outputs` as batches of the output types."""
        return [reshaped(o, (self.size, *t.shape)) for o, t in zip(outputs, self.out_types)]

    def whole(self, index: int) -> Tensor | None:
        """Operand `index` as a batch, repeated if all examples share it."""
        operand = self.operands[index]
        if operand is None or self.batched[index]:
            return operand
        return broadcast_to(operand, (self.size, *operand.shape))

    def all_whole(self) -> list[Tensor | None]:
        """All operands as batches."""
        return [self.whole(i) for i in range(len(self.operands))]

    def aligned(self, rank: int) -> list:
        """The operands, batches of examples with at least `rank` axes, so that they broadcast."""
        made = []
        for x, batched, type_ in zip(self.operands, self.batched, self.in_types):
            if batched and len(type_.shape) < rank:
                ones = (1,) * (rank - len(type_.shape))
                x = reshaped(x, (self.size, *ones, *type_.shape))
            made.append(x)
        return made

    def rank(self, index: int = 0) -> int:
        return len(self.in_types[index].shape)

    def only(self, *positions: int) -> bool:
        """Whether no operand but these is a batch."""
        return not any(b for i, b in enumerate(self.batched) if i not in positions)


def reshaped(x: Tensor, shape: tuple) -> Tensor:
    return x if x.shape == shape else find("reshape")(x, shape)


def broadcast_to(x: Tensor, shape: tuple) -> Tensor:
    return x if x.shape == shape else find("broadcast_to")(x, shape)


def rule_of(definition: OpDef) -> Callable[[Call], Any]:
    """The rule of an op: its own, that of elementwise ops if its block says so, else a loop."""
    if definition.batch_rule is not None:
        return definition.batch_rule
    return one_by_one if definition.elementwise is None else elementwise


# ---- families ----------------------------------------------------------------------------------------------


def one_by_one(call: Call) -> list[Tensor]:
    """The op on each example, results stacked: right for every op, at the speed of a loop."""
    stack = find("stack")
    rows: list[tuple] = []
    for i in range(call.size):
        examples = [x[i] if b else x for x, b in zip(call.operands, call.batched)]
        updated = [call.op.definition.param_names.index(name) for name in call.op.definition.updates]
        for position in updated:  # the op is to write into a tensor of its own
            if not call.batched[position] and examples[position] is not None:
                examples[position] = examples[position] * 1
        found = call.run(examples)
        made = tuple(examples[p] for p in updated)
        rows.append(made if updated and found[0] is made[0] else made + found)
    if not rows:
        return [_C.empty(t.dtype, (0, *t.shape)) for t in call.out_types]
    columns = list(zip(*rows))
    if any(t.shape != column[0].shape for column in columns for t in column):
        raise errors.error(
            errors.MyceliaRuntimeError,
            call.op.name,
            "the shape of its result depends on the data and differs between the examples of a vmap",
        )
    return [stack(list(column), 0) for column in columns]


def elementwise(call: Call) -> tuple:
    """An element of the result depends on those at its place: examples stand side by side."""
    ranks = [len(t.shape) for t in call.in_types if t is not None]
    made = call.aligned(max(ranks))
    if call.op.definition.elementwise == "same" and len(made) > 1:
        made = [
            broadcast_to(x, (call.size, *t.shape)) if not b and t is not None else x
            for x, b, t in zip(made, call.batched, call.in_types)
        ]
    return tuple(call.shaped(call.run(made)))


def along(attribute: str, empty_is_all: bool = True) -> Callable[[Call], list[Tensor]]:
    """The op works along the axis, or the axes, that an attribute names. None means all; so does (), but for
    `empty_is_all`.
    """

    def rule(call: Call) -> list[Tensor]:
        value, rank = call.attrs[attribute], call.rank()
        single = next(a.kind for a in call.op.definition.attrs if a.name == attribute) == "int"
        operands = call.all_whole()
        if rank == 0:  # an example that is a number is a row of one
            rows = [x if x is None else reshaped(x, (call.size, 1)) for x in operands]
            return call.shaped(call.run(rows, **{attribute: 1 if single else (1,)}))
        if value is None and single:
            return call.shaped(call.run([reshaped(operands[0], (call.size, -1))], **{attribute: 1}))
        if value is None or value == () and empty_is_all:
            axes: Any = tuple(range(1, rank + 1))
        elif isinstance(value, tuple):
            axes = tuple(a % rank + 1 for a in value)
        else:
            axes = value % rank + 1
        return call.shaped(call.run(operands, **{attribute: axes}))

    rule.attribute = attribute  # which graphs that are divided ask for, too
    return rule


def leading(call: Call) -> list[Tensor]:
    """The op works on the last axes: what is in front is a batch already. Operands are repeated to the same
    leading axes.
    """
    return call.shaped(call.run(call.all_whole()))


def first_leading(call: Call) -> list[Tensor]:
    """As `leading`, if the first operand alone is a batch."""
    return call.shaped(call.run(call.operands)) if call.only(0) else one_by_one(call)


def joined(*positions: int) -> Callable[[Call], list[Tensor]]:
    """The first axis of these operands is a batch of its own, which the examples' joins; the other operands
    must be shared.
    """

    def rule(call: Call) -> list[Tensor]:
        if not call.only(*positions) or call.rank() == 0:
            return one_by_one(call)
        operands = list(call.operands)
        for position in positions:
            x = call.whole(position)
            operands[position] = reshaped(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
        return call.shaped(call.run(operands))

    return rule


def reshape(call: Call) -> list[Tensor]:
    """The result holds the elements of the first operand, in their order."""
    return call.shaped((call.operands[0],))


def with_example_numbers(call: Call, indices: Tensor) -> Tensor:
    """Indices [batch, I.., k] with the number of the example in front of each: [batch, I.., k + 1]."""
    shape = (*indices.shape[:-1], 1)
    numbers = Tensor(list(range(call.size)), indices.dtype)
    numbers = broadcast_to(reshaped(numbers, (call.size, *(1,) * (len(shape) - 1))), shape)
    return find("concat")([numbers, indices], -1)
