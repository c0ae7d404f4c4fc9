"""`PipelineGradReducer`: the gradients of a network in stages, added over those that train the same
Parameters.
"""

from __future__ import annotations

from mycelia.engine.base import ignored
from mycelia.engine.communication import mode, stages
from mycelia.engine.ops.communication.collectives import all_reduce
from mycelia.nn.cell import Cell
from mycelia.nn.wrap.distributed import DistributedGradReducer


class PipelineGradReducer(Cell):
    """Gradients of the Parameters of this stage, added over the processes of the stage (averaged with the
    setting `gradients_mean`) and, for a Parameter of several stages, over these, then divided by
    `scale_sense`. Gradients of Parameters that only other stages have are None, and stay so.

    `parameters`: what is optimized, in the order of the gradients; `opt_shard` has no effect: an optimizer
    whose states are divided takes its parts itself.
    """

    @ignored.arguments(opt_shard="optimizers whose states are divided cut gradients themselves")
    def __init__(self, parameters, scale_sense=1.0, opt_shard=None):
        super().__init__(auto_prefix=False)
        self.__dict__["parameters"] = list(parameters)
        self.scale_sense = scale_sense
        self.__dict__["_reducers"] = {}

    def construct(self, grads):
        many = isinstance(grads, (tuple, list))
        given = list(grads) if many else [grads]
        stage = stages.current("PipelineGradReducer")
        if stage is not None:
            places = [i for i, g in enumerate(given) if g is not None]
            for i, found in zip(places, self._over_stage(stage, places, given)):
                given[i] = found
            for i in places:
                owners = self.parameters[i].stages
                if len(owners) > 1:
                    ranks = [stage.rank(number) for number in owners]
                    given[i] = all_reduce(given[i], "sum", stages.group(ranks))
        if not isinstance(self.scale_sense, (int, float)) or self.scale_sense != 1:
            given = [None if g is None else g / self.scale_sense for g in given]
        elif stage is None:
            return grads
        return tuple(given) if many else given[0]

    def _over_stage(self, stage: stages.Stage, places: list[int], given: list) -> tuple:
        mine = tuple(given[i] for i in places)
        if stage.width == 1 or not mine:
            return mine
        key = stage, tuple(places), mode.mean()
        if key not in self._reducers:
            own = [self.parameters[i] for i in places]
            group = stages.group(stage.ranks)
            self._reducers[key] = DistributedGradReducer(own, mode.mean(), stage.width, group=group)
        return self._reducers[key](mine)
