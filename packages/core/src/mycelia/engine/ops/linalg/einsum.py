"""Einstein summation, written with the ops of `linalg`, `reduce` and `shape`, hence differentiable."""

from mycelia.engine.base import errors
from mycelia.engine.ir.types import agree
from mycelia.engine.ops.arrays import axes as _axes
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.arrays.triangles import diagonal
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.linalg import products as _linalg
from mycelia.engine.ops.reductions import reduce as _reduce

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class _Term:
    """A tensor whose axes have labels."""

    __slots__ = ("labels", "tensor")

    def __init__(self, tensor, labels):
        self.tensor, self.labels = tensor, list(labels)

    def size(self, label):
        return self.tensor.shape[self.labels.index(label)]

    def drop(self, labels):
        """Sum over the axes of `labels`."""
        if labels:
            self.tensor = _reduce.sum(self.tensor, tuple(self.labels.index(label) for label in labels))
            self.labels = [label for label in self.labels if label not in labels]

    def arrange(self, labels):
        """Axes in the order of `labels`, a permutation of its own."""
        order = tuple(self.labels.index(label) for label in labels)
        if order != tuple(range(len(order))):
            self.tensor = _axes.transpose(self.tensor, order)
        self.labels = list(labels)
        return self.tensor


def _expand(text, rank, equation):
    """The labels of one operand, one per axis; the axes of "..." get numbers counted from the right."""
    before, dots, after = text.partition("...")
    if (
        "." in before + after
        or not (before + after).isascii()
        or not all(c.isalpha() for c in before + after)
    ):
        raise errors.value_error(
            f"For 'einsum', equation {equation!r} may hold letters, '...', ',' and '->' only"
        )
    hidden = rank - len(before) - len(after)
    if hidden < 0 or (hidden > 0 and not dots):
        raise errors.value_error(
            f"For 'einsum', {text!r} in equation {equation!r} names {len(before) + len(after)} axes, "
            f"but the operand has {rank}"
        )
    return [*before, *range(-hidden, 0), *after]


def _parse(equation, ranks):
    """Labels of each operand and of the result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        raise errors.value_error(
            f"For 'einsum', equation {equation!r} names {len(texts)} operands, but {len(ranks)} were given"
        )
    operands = [_expand(text, rank, equation) for text, rank in zip(texts, ranks)]
    hidden = sorted({label for labels in operands for label in labels if isinstance(label, int)})
    if not arrow:  # the classic rule: "..." first, then letters that occur once, in alphabetical order
        letters = [label for labels in operands for label in labels if isinstance(label, str)]
        return operands, [*hidden, *sorted(c for c in set(letters) if letters.count(c) == 1)]
    before, dots, after = right.partition("...")
    result = [*before, *(hidden if dots else ()), *after]
    if len(set(result)) != len(result):
        raise errors.value_error(f"For 'einsum', the result of equation {equation!r} names a label twice")
    unknown = set(before + after) - {label for labels in operands for label in labels}
    if unknown:
        raise errors.value_error(
            f"For 'einsum', no operand of equation {equation!r} has the result's labels {sorted(unknown)}"
        )
    return operands, result


def _single(term, keep):
    """Repeated labels become a diagonal; labels that nobody needs are summed."""
    for label in dict.fromkeys(term.labels):
        while term.labels.count(label) > 1:
            i = term.labels.index(label)
            j = term.labels.index(label, i + 1)
            if term.tensor.shape[i] != term.tensor.shape[j]:
                raise errors.value_error(
                    f"For 'einsum', label {label!r} stands for axes of sizes {term.tensor.shape[i]} and "
                    f"{term.tensor.shape[j]} of one operand"
                )
            term.tensor = diagonal(term.tensor, 0, i, j)
            term.labels = [c for k, c in enumerate(term.labels) if k not in (i, j)] + [label]
    term.drop([label for label in term.labels if label not in keep])
    return term


def _contract(a, b, keep):
    """The product of two terms, summed over common labels not in `keep`: one batched matrix product."""
    for x, y in ((a, b), (b, a)):  # a size of 1 broadcasts: without that axis the other side's one remains
        differ = [c for c in x.labels if c in y.labels and not agree(x.size(c), y.size(c))]
        stretched = [c for c in differ if x.size(c) == 1 and y.size(c) != 1]
        x.drop(stretched)
    common = [c for c in a.labels if c in b.labels]
    for c in common:
        if a.size(c) != b.size(c):
            raise errors.value_error(
                f"For 'einsum', label {c!r} stands for axes of sizes {a.size(c)} and {b.size(c)}"
            )
    batch = [c for c in common if c in keep]
    inner = [c for c in common if c not in keep]
    rows = [c for c in a.labels if c not in common]
    columns = [c for c in b.labels if c not in common]
    sizes = {c: t.size(c) for t in (a, b) for c in t.labels}
    labels = [*batch, *rows, *columns]
    if not inner:  # an outer product, element by element along the batch
        left = _shape.reshape(a.arrange(batch + rows), [sizes[c] for c in batch + rows] + [1] * len(columns))
        right = _shape.reshape(b.arrange(batch + columns), [sizes[c] if c in b.labels else 1 for c in labels])
        return _Term(_math.mul(left, right), labels)

    def count(names):
        n = 1
        for c in names:
            n *= sizes[c]
        return n

    # The side of the contracted axes follows the operand's own order: the product transposes for free.
    turn_a = bool(rows) and a.labels.index(inner[0]) < a.labels.index(rows[0])
    turn_b = bool(columns) and b.labels.index(columns[0]) < b.labels.index(inner[0])
    m, n, k, depth = count(rows), count(columns), count(inner), count(batch)
    left = a.arrange(batch + (inner + rows if turn_a else rows + inner))
    right = b.arrange(batch + (columns + inner if turn_b else inner + columns))
    left_shape, right_shape = (k, m) if turn_a else (m, k), (n, k) if turn_b else (k, n)
    if batch:
        product = _linalg.batch_matmul(
            _shape.reshape(left, (depth, *left_shape)),
            _shape.reshape(right, (depth, *right_shape)),
            turn_a,
            turn_b,
        )
    else:
        product = _linalg.mat_mul(
            _shape.reshape(left, left_shape), _shape.reshape(right, right_shape), turn_a, turn_b
        )
    return _Term(_shape.reshape(product, [sizes[c] for c in labels]), labels)


def einsum(equation, *operands):
    """Sums of products over labelled axes: ``einsum("bij,bjk->bik", x, y)``.

    A label that is not in the result is summed; one that an operand repeats takes its diagonal; "..." stands
    for axes that broadcast. Without "->" the result has the labels that occur once, in alphabetical order.
    Operands are contracted from left to right. Label numbers work too: ``einsum(x, [0, 1], y, [1, 2])``.
    Errors: ValueError for an equation that does not fit the operands.
    """
    if not isinstance(equation, str):
        equation, operands = _from_lists(equation, operands)
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    labels, result = _parse(equation, [t.ndim for t in operands])
    terms = [_Term(t, names) for t, names in zip(operands, labels)]

    def needed(rest):
        return set(result).union(*(t.labels for t in rest))

    total = _single(terms[0], needed(terms[1:]))
    for i, term in enumerate(terms[1:], 1):
        later = needed(terms[i + 1 :])
        total = _contract(total, _single(term, later | set(total.labels)), later)
        total.drop([c for c in total.labels if c not in later])
    return total.arrange(result)


def _from_lists(first, rest):
    """An equation and operands from operands that alternate with lists of label numbers."""
    items = (first, *rest)
    result = items[-1] if len(items) % 2 else None
    operands = items[0 : len(items) - len(items) % 2 : 2]

    def text(labels):
        return "".join("..." if c is Ellipsis else _LETTERS[c] for c in labels)

    equation = ",".join(text(labels) for labels in items[1 : len(items) - len(items) % 2 : 2])
    return equation if result is None else f"{equation}->{text(result)}", operands


__all__ = ["einsum"]
