"""The interface between what trains on several processes and what carries bytes between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycelia.engine.communication.reductions import array_of, divide, tensor_of


class Pending:
    """A message that was started; `wait()` comes back when it is done, with the array if one was received."""

    def __init__(self, finish: Callable[[], np.ndarray | None]) -> None:
        self._finish: Callable[[], np.ndarray | None] | None = finish
        self._result: np.ndarray | None = None

    def wait(self) -> np.ndarray | None:
        if self._finish is not None:
            finish, self._finish = self._finish, None
            self._result = finish()
        return self._result


class Communicator(ABC):
    """A group of processes, seen by one of its members.

    Every member calls the same collectives in the same order with the same dtype, and with the same shape
    where nothing else is said. Engines find out where that does not hold, and where a member is missing:
    RuntimeError names the rank, what it did and what the others did; no call waits for ever.
    Arrays are C-contiguous, those of bfloat16 of the dtype `dtypes.BFLOAT16_BITS`; results are new arrays
    that the caller owns. Ranks in arguments are those in the group.

    `name`: of the group; `rank`: of this process in it; `ranks`: of the members in the world; `engine`: what
    carries the bytes, `local_rank` and `local_size`: this process among those of its machine.
    """

    name: str
    rank: int
    ranks: tuple[int, ...]
    engine: str
    local_rank: int
    local_size: int

    @property
    def size(self) -> int:
        return len(self.ranks)

    @abstractmethod
    def split(self, name: str, ranks: Sequence[int]) -> Communicator:
        """The group `name` of these ranks of the world, which this process is one of."""

    @abstractmethod
    def all_reduce(self, array: np.ndarray, reduction: str = "sum") -> np.ndarray:
        """The arrays of all members combined by "sum", "prod", "max", "min" or "avg", to all."""

    _sums: dict[int, list[np.ndarray]] | None = None  # of `start_reduction`

    def start_reduction(
        self,
        arrays: Sequence[np.ndarray],
        reduction: str = "sum",
        divisor: float = 1,
        name: str = "",
        scatters: bool = False,
    ) -> int:
        """`all_reduce` of several arrays of one dtype, which may be changed at once; its number, by which
        `finish_reduction` gives the sums. All members start the same in the same order.

        `divisor`: of the sums, after they were rounded; `name`: what must be the same on all members besides
        dtype and sizes; `scatters`: of the one array, which is as many equal parts as there are members,
        each member gets its own part only. Engines without a way to do it beside other work do it at once.
        """
        flat = np.concatenate([array.reshape(-1) for array in arrays])
        if scatters:
            total = self.reduce_scatter(np.split(flat, self.size), reduction)
            found = [total]
        else:
            total = self.all_reduce(flat, reduction)
            pieces = np.split(total, np.cumsum([array.size for array in arrays])[:-1])
            found = [piece.reshape(array.shape) for piece, array in zip(pieces, arrays)]
        if divisor != 1:
            divide(total, divisor)
        self._sums = {} if self._sums is None else self._sums
        number = 1 + max(self._sums, default=0)
        self._sums[number] = found
        return number

    def start_sums(self, tensors: tuple, divisor: float = 1, name: str = "", scatters: bool = False) -> int:
        """As `start_reduction`, of sums of tensors of one dtype on the host, which `finish_sums` gives."""
        return self.start_reduction([array_of(x) for x in tensors], "sum", divisor, name, scatters)

    def finish_sums(self, number: int) -> tuple:
        """As `finish_reduction`, the sums as tensors on the host."""
        return tuple([tensor_of(array) for array in self.finish_reduction(number)])

    def finish_reduction(self, number: int) -> list[np.ndarray]:
        """The sums that `start_reduction` has begun to make, in the arrays' shapes; once for each number."""
        if self._sums is None or number not in self._sums:
            raise ValueError(f"finish_reduction: there are no sums of number {number}")
        return self._sums.pop(number)

    @abstractmethod
    def reduce(self, array: np.ndarray, root: int, reduction: str = "sum") -> np.ndarray | None:
        """`all_reduce`, whose result only `root` gets."""

    @abstractmethod
    def reduce_scatter(self, parts: Sequence[np.ndarray], reduction: str = "sum") -> np.ndarray:
        """Entry i of the lists of all members combined, to member i. Entries may differ in shape."""

    @abstractmethod
    def all_gather(self, array: np.ndarray, uneven: bool = False) -> list[np.ndarray]:
        """The arrays of all members, to all; `uneven`: their shapes may differ."""

    @abstractmethod
    def gather(self, array: np.ndarray, root: int, uneven: bool = False) -> list[np.ndarray] | None:
        """The arrays of all members, to `root`."""

    @abstractmethod
    def scatter(self, parts: Sequence[np.ndarray] | None, root: int) -> np.ndarray:
        """Entry i of the list of `root`, to member i; the others give None."""

    @abstractmethod
    def broadcast(self, array: np.ndarray, root: int) -> np.ndarray:
        """The array of `root`, to all."""

    @abstractmethod
    def all_to_all(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Entry i of the list of member j becomes entry j of the list of member i. Shapes may differ."""

    @abstractmethod
    def barrier(self) -> None:
        """Comes back when all members have come."""

    @abstractmethod
    def start_send(self, array: np.ndarray, to: int, tag: int = 0) -> Pending:
        """A message to another member is on its way; the array may be changed at once."""

    @abstractmethod
    def start_receive(self, source: int, tag: int = 0) -> Pending:
        """The next message of `source` with this tag that no receive which was started earlier gets."""

    def send(self, array: np.ndarray, to: int, tag: int = 0) -> None:
        """Comes back when the message is on its way."""
        self.start_send(array, to, tag).wait()

    def receive(self, source: int, tag: int = 0) -> np.ndarray:
        """The next message of `source` with this tag."""
        found = self.start_receive(source, tag).wait()
        assert found is not None
        return found

    @abstractmethod
    def all_gather_object(self, value: Any) -> list[Any]:
        """What all members gave, to all; anything that `pickle` takes."""

    @abstractmethod
    def close(self) -> None:
        """This process leaves: nothing can be sent or received any more."""
