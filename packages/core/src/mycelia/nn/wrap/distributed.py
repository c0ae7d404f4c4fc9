"""Cells that join a network with other processes: gradients are added over them."""

from __future__ import annotations

from collections.abc import Iterable

from mycelia.engine.autodiff.jacobian_products import vjp
from mycelia.engine.base import errors, ignored
from mycelia.engine.communication import mode, world
from mycelia.engine.communication.world import WORLDS
from mycelia.nn.cell import Cell
from mycelia.nn.optim import sharing
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.nn.wrap.sums import Part, Sums, as_they_are_made


class DistributedGradReducer(Cell):
    """Gradients added over the processes of a group, and divided by `degree` if `mean`.

    `parameters`: what is optimized, in the order of the gradients; those with `layerwise_parallel` keep their
    own. `mean`: whether to average, by default the setting `gradients_mean`; `degree`: what is divided by, by
    default the number of processes. Many gradients go together, up to 25 MB at a time, or as `comm_fusion` of
    the Parameters or the settings `all_reduce_fusion_config` and `comm_fusion` say; `fusion_type`: 0 each
    alone, above 1 without these settings' places.
    Errors: ValueError for `degree` and `fusion_type`; as collectives have.
    """

    def __init__(self, parameters, mean=None, degree=None, fusion_type=1, group=WORLDS[0]):
        super().__init__(auto_prefix=False)
        if degree is not None and (isinstance(degree, bool) or not isinstance(degree, int) or degree < 1):
            raise errors.value_error(
                "DistributedGradReducer", f"degree must be a positive int, but got {degree!r}"
            )
        if isinstance(fusion_type, bool) or not isinstance(fusion_type, int) or fusion_type < 0:
            raise errors.value_error(
                "DistributedGradReducer", f"fusion_type must be an int >= 0, but got {fusion_type!r}"
            )
        alone = world.current() is None
        if alone and degree not in (None, 1):
            missing = "gradients of others are not added, only divided by it"
            ignored.tell("DistributedGradReducer", "degree", degree, missing)
        self.mean = mode.mean() if mean is None else bool(mean)
        members = 1 if alone else world.size("DistributedGradReducer", group)
        self.degree, self.group, self.reduces = degree or members, group, members > 1
        parameters = list(parameters)
        self.own = tuple(bool(getattr(p, "layerwise_parallel", False)) for p in parameters)
        numbers, self.most_bytes = mode.fusion(parameters, fusion_type)
        self.numbers = tuple(numbers)

    def construct(self, grads):
        many = isinstance(grads, (tuple, list))
        given = list(grads) if many else [grads]
        if not self.reduces:
            if not (self.mean and self.degree > 1):
                return grads
            given = [self._divided(g) for g in given]
        else:
            given = self.sums(given).finish(given)
        return tuple(given) if many else given[0]

    def scattered(self, grads, shares: sharing.Shares, keeps_parts: bool = False) -> tuple:
        """As when it is called, but of gradients with a share each process gets its own part only."""
        if not self.reduces:
            return tuple(self(grads))
        return tuple(self.sums(grads, shares, keeps_parts).finish(grads))

    def sums(self, like, shares: sharing.Shares | None = None, keeps_parts: bool = False) -> Sums:
        """The sums of gradients like these, which may be given one by one. Of those with a share each process
        gets its own part only, and with `keeps_parts` the whole is not kept longer than until it is sent.
        """
        order = as_they_are_made(like)
        divided = [] if shares is None else [None if own else s for s, own in zip(shares, self.own)]
        most = sharing.LEAN_BYTES if keeps_parts else mode.PART_BYTES
        parts = [Part(places, True) for places in sharing.together(divided, like, order, most)]
        whole = [i for i in order if not divided or divided[i] is None]
        parts += [Part(places) for places in self._parts(like, whole)]
        turn = {place: k for k, place in enumerate(order)}
        parts.sort(key=lambda part: max(turn[i] for i in part.places))
        divisor = float(self.degree) if self.mean else 1.0
        return Sums(parts, self.group, divisor, divided or None, keeps_parts)

    def _divided(self, gradient):
        return gradient / float(self.degree)

    def _parts(self, gradients, places: Iterable[int] | None = None) -> list[list[int]]:
        """Places of gradients, of those given or of all, that go together: of one number and dtype, in their
        order, up to `most_bytes`.
        """
        parts: list[list[int]] = []
        open_parts: dict[tuple, tuple[list[int], int]] = {}
        for i in range(len(gradients)) if places is None else places:
            gradient = gradients[i]
            if i < len(self.own) and self.own[i]:
                continue
            number = self.numbers[i] if i < len(self.numbers) else 1
            size = gradient.size * gradient.dtype.itemsize
            part, before = open_parts.get((number, gradient.dtype), ([], 0))
            if not number or not part or before + size > self.most_bytes:
                part, before = [], 0
                parts.append(part)
            part.append(i)
            open_parts[number, gradient.dtype] = part, before + size
        return parts


class VirtualDatasetCellTriple(Cell):
    """A network of three inputs whose batches are spread over devices: here the network itself."""

    def __init__(self, backbone):
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, a, b, c):
        return self._backbone(a, b, c)


class Jvp(Cell):
    """``(outputs, products)``: a function's outputs and their derivatives along `v`, the last input."""

    def __init__(self, fn):
        super().__init__()
        self.__dict__["fn"] = fn
        if isinstance(fn, Cell):
            self._cells["fn"] = fn

    def construct(self, *args):
        from mycelia.engine.autodiff.jacobian_products import jvp

        inputs, v = args[:-1], args[-1]
        inputs = inputs[0] if len(inputs) == 1 else inputs
        return jvp(self.fn, inputs, v)


class Vjp(Cell):
    """``(outputs, gradients)``: a function's outputs and the gradients for a cotangent, the last input."""

    def __init__(self, fn):
        super().__init__()
        self.__dict__["fn"] = fn
        if isinstance(fn, Cell):
            self._cells["fn"] = fn

    def construct(self, *args):
        outputs, pull = vjp(self.fn, *args[:-1])
        gradients = pull(args[-1])
        return outputs, gradients[0] if len(args) == 2 and isinstance(gradients, tuple) else gradients


class GetNextSingleOp(Cell):
    """The next batch of a device's data queue: not there. Raises NotSupportedError; the Ascend or GPU backend
    would have such queues.
    """

    def __init__(self, dataset_types, dataset_shapes, queue_name):
        super().__init__()
        raise errors.error(
            errors.NotSupportedError,
            "GetNextSingleOp",
            "data queues on the device need an Ascend or GPU backend",
            hint="iterate the dataset",
        )


def _only_distributed(name: str, doc: str) -> type[Cell]:
    def __init__(self, optimizer, *args, **kwargs):
        Cell.__init__(self, auto_prefix=False)
        if not isinstance(optimizer, Optimizer):
            raise errors.type_error(
                name, f"the optimizer must be an Optimizer, but got {type(optimizer).__name__}"
            )
        raise errors.error(
            errors.NotSupportedError, name, "it joins several devices, which needs an Ascend backend"
        )

    return type(name, (Cell,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


_DOC = "An optimizer over several devices: not there. Raises NotSupportedError; Ascend would have it."
AdaSumByGradWrapCell = _only_distributed("AdaSumByGradWrapCell", _DOC)
AdaSumByDeltaWeightWrapCell = _only_distributed("AdaSumByDeltaWeightWrapCell", _DOC)
OptTFTWrapper = _only_distributed("OptTFTWrapper", _DOC)
