"""Streams of random keys: a generator is a state (seed, offset) whose offset moves on by one with each draw.

`ms.set_seed` restarts all streams; without any seed the operating system makes one up.
"""

import gc
import itertools
import os
import weakref

import numpy as np

from mycelia.engine.base import config
from mycelia.engine.ops.define import op
from mycelia.engine.ops.random.draws import _check_key


@op(name="rng_next", updates=("state",), nondiff=True)
def _rng_next(state):
    """The key of the next draw of a generator, whose offset moves on by one.

    Shapes: state int64 [2] (seed, offset) -> int64 [2].
    """
    return state + np.array([0, 1], np.int64), state.copy()


@_rng_next.infer
def _rng_next(state):
    _check_key(state)
    return state, state


@_rng_next.samples
def _rng_next(rand):
    yield np.array([7, 3], np.int64)


_numbers = itertools.count()
#: Generators in the order in which they were made: a program that begins again makes them alike.
_living: "weakref.WeakValueDictionary[int, Generator]" = weakref.WeakValueDictionary()


class Generator:
    """A stream of random numbers with a seed and a position.

    The state is a tensor that draws update: compiled code continues the stream where eager code left it.
    """

    def __init__(self):
        self._seed = 0
        self._tensor = None
        _living[next(_numbers)] = self

    @property
    def _place(self):
        """Seed and offset."""
        return [int(n) for n in self._state.asnumpy()]

    @property
    def _state(self):
        if self._tensor is None:
            from mycelia.engine.tensors.tensor import Parameter  # tensors are built upon the ops

            state = np.array([self._seed, 0], np.int64)
            self._tensor = Parameter(state, name="random_state", requires_grad=False)
        return self._tensor

    def _restart(self, seed, offset=0):
        self._seed = seed
        if self._tensor is not None:
            from mycelia.engine.tensors.tensor import Tensor

            self._tensor.set_data(Tensor(np.array([seed, offset], np.int64)))

    def _next_key(self):
        return _rng_next(self._state)

    def _step(self, step):
        """Seed and offset as they are, then the offset moves on by `step`."""
        from mycelia.engine.ops.control_flow.state import assign_add
        from mycelia.engine.tensors.tensor import Tensor

        before = self._state + 0
        assign_add(self._state, Tensor(np.array([0, 1])) * step)
        return before[0], before[1]

    def seed(self):
        """Sets a seed that the operating system makes up and returns it."""
        fresh = int.from_bytes(os.urandom(4), "little")
        self._restart(fresh)
        return fresh

    def manual_seed(self, seed):
        """Restarts the stream at `seed`, an integer; returns the generator."""
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
            raise TypeError(f"manual_seed: seed must be an int, got {type(seed).__name__}")
        self._restart(_signed(int(seed)))
        return self

    def initial_seed(self):
        """The seed that the stream started from."""
        return self._seed

    def get_state(self):
        """The state as a uint8 tensor of 16 bytes: seed and position."""
        from mycelia.engine.tensors.tensor import Tensor

        return Tensor(self._state.asnumpy().view(np.uint8).copy())

    def set_state(self, state):
        """Continues from a state that `get_state` returned."""
        data = np.ascontiguousarray(state.asnumpy())
        if data.dtype != np.uint8 or data.size != 16:
            raise ValueError(
                f"set_state: state must be 16 bytes of uint8, got {data.dtype} of shape {data.shape}"
            )
        self._take(data.reshape(-1).view(np.int64))

    def _take(self, place):
        """Continues at a seed and an offset."""
        seed, offset = place
        self._state  # noqa: B018 - the tensor must exist to take the position
        self._restart(int(seed), int(offset))


def _signed(seed):
    """`seed` modulo 2^64 as an int64."""
    return (seed + 2**63) % 2**64 - 2**63


class _Streams:
    """The generators behind `ops`' random functions: the default one, and one for each seed argument."""

    def __init__(self):
        self.global_seed = None
        self.default = Generator()
        self.is_seeded = False
        self.by_seed = {}
        self.categorical = {}  # of `random_categorical`, which mixes no global seed into its own

    def default_generator(self):
        if not self.is_seeded:
            self.default.seed()  # never the same twice unless the user asks for it
            self.is_seeded = True
        return self.default

    def generator(self, seed):
        if seed not in self.by_seed:
            self.by_seed[seed] = Generator().manual_seed(self._mixed(seed))
        return self.by_seed[seed]

    def categorical_generator(self, seed):
        if seed not in self.categorical:
            self.categorical[seed] = Generator().manual_seed(seed)
        return self.categorical[seed]

    def _mixed(self, seed):
        return seed if self.global_seed is None else seed ^ self.global_seed * 0x9E3779B97F4A7C15 + 1

    def restart(self, seed):
        self.default.manual_seed(seed)
        self.is_seeded = True
        for own, generator in self.by_seed.items():
            generator.manual_seed(self._mixed(own))


_streams = _Streams()


def _follow(seed):
    """`ms.set_seed` and MYCELIA_SEED: compiled code sees the restart too, since it reads the state."""
    if seed is not None:
        _streams.global_seed = seed
        _streams.restart(seed)


config.on_change("seed", _follow)


def manual_seed(seed):
    """Restarts the default generator at `seed` and returns it."""
    _streams.is_seeded = True
    return _streams.default.manual_seed(seed)


def seed():
    """Restarts the default generator at a seed that the operating system makes up, and returns that."""
    _streams.is_seeded = True
    return _streams.default.seed()


def initial_seed():
    """The seed of the default generator."""
    return _streams.default_generator().initial_seed()


def get_rng_state():
    """The default generator's state, a uint8 tensor of 16 bytes."""
    return _streams.default_generator().get_state()


def set_rng_state(state):
    """Continues the default generator from a state that `get_rng_state` returned."""
    _streams.is_seeded = True
    _streams.default.set_state(state)


def _draw_key(seed=None, generator=None):
    """Key of the next draw: of `generator`, of the stream of `seed`, or of the default stream."""
    if generator is None:
        generator = _streams.default_generator() if seed is None else _streams.generator(int(seed))
    return generator._next_key()


default_generator = _streams.default  # what random functions draw from that get no generator


class OwnStreams:
    """Generators that users and ops have of their own: those that a program has when it begins to train, in
    the order in which they were made, which is the same when it begins again.

    What nobody can reach any more is collected first: it is chance when that is done otherwise.
    """

    def __init__(self):
        gc.collect()
        self._beginning = next(_numbers)
        self._begun = [(g._seed, weakref.ref(g)) for n, g in _own() if n < self._beginning]

    def positions(self):
        """Where all streams of this process are, for `go_on_from` in one that runs the same program: the
        default one, those of seed arguments, and by the seeds that they began with those of its own; None
        stands for one that is no longer there. Of streams made later there are only the seeds.
        """
        places = {}
        for seed, reference in self._begun:
            generator = reference()
            places.setdefault(str(seed), []).append(None if generator is None else generator._place)
        later = {g._seed for n, g in _own() if n > self._beginning and g._place[1]}
        return {
            "default": _streams.default_generator()._place,
            "by_seed": {str(seed): generator._place[1] for seed, generator in _streams.by_seed.items()},
            "categorical": {str(seed): g._place[1] for seed, g in _streams.categorical.items()},
            "own": places,
            "later": sorted(later),
        }

    def go_on_from(self, places):
        """Continues all streams from what `positions` gave. Of streams with one seed the newest are meant,
        if there are more or fewer of them; a warning says which begin anew.
        """
        _streams.is_seeded = True
        _streams.default._take(places["default"])
        for seed, offset in places["by_seed"].items():
            generator = _streams.generator(int(seed))
            generator._take((generator._seed, offset))
        for seed, offset in places["categorical"].items():
            _streams.categorical_generator(int(seed))._take((int(seed), offset))
        missing = set(places["later"])
        for seed, saved in places["own"].items():
            found = [reference() for begun, reference in self._begun if begun == int(seed)]
            for generator, place in zip(reversed(found), reversed(saved)):
                if generator is not None and place is not None:
                    generator._take(place)
            older = saved[: max(0, len(saved) - len(found))]
            if any(place is not None and place[1] for place in older):
                missing.add(int(seed))
        if missing:
            from mycelia.engine.base import log

            log.warning(
                "random numbers: streams of the seeds %s begin anew: not all are there yet", sorted(missing)
            )


def _own():
    """Number and generator of those that are neither the default one nor of a seed argument, in order."""
    shared = [_streams.default, *_streams.by_seed.values(), *_streams.categorical.values()]
    others = set(map(id, shared))
    living = [(reference.key, reference()) for reference in _living.valuerefs()]  # one list: threads add some
    return sorted((n, g) for n, g in living if g is not None and id(g) not in others)
