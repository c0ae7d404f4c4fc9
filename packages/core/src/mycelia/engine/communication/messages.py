"""Collectives made of messages, for engines that only carry these.

All collectives are one exchange: each member sends each other member one message, and each message says as
what it was meant. So whoever does something else, or something in another order, is found by the first
message that comes from it, for no further cost; and sums are made where the data is, in the order of ranks.

Cost: an all_reduce moves ``2 (n-1)/n`` of the array per member, the least there is, in ``2 (n-1)`` messages;
short arrays go whole to everybody, in one round.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.communication import reductions, shared, short
from mycelia.engine.communication.communicator import Communicator, Pending
from mycelia.engine.communication.recipes import WHOLE_BYTES
from mycelia.engine.communication.reducing import Reducing
from mycelia.engine.communication.shared import Placed, Shelf
from mycelia.engine.communication.short import Short
from mycelia.engine.communication.transport import NOTICE, Message, Transport, as_bytes, from_bytes


def _described(array: np.ndarray) -> str:
    return f"{reductions.name_of(array.dtype)} {list(array.shape)}"


def _owned(array: np.ndarray, is_own: bool) -> np.ndarray:
    """Memory that nobody else changes: a message is such, what is read in a member's memory is not."""
    return array.copy() if is_own or not array.flags.writeable else array


class MessageCommunicator(Communicator):
    """A group over a `Transport`."""

    def __init__(self, transport: Transport, name: str, ranks: Sequence[int]) -> None:
        self._transport = transport
        self.name, self.ranks, self.engine = name, tuple(ranks), transport.engine
        self.rank = self.ranks.index(transport.rank)
        self.local_rank, self.local_size = transport.local_rank, transport.local_size
        self._number = 0
        self._room = np.empty(0, np.uint8)
        self._shelf: Shelf | None = None
        self._reducing: Reducing | None = None
        self._short: Short | None = None
        self._asks_for_short = transport.joins_processes
        # No notice counts before all have come to this group: those there are were of one of its name before.
        transport.begun_of[name] = sys.maxsize
        self._calls: dict[tuple, tuple[str, bytes]] = {}  # in words, by reduction, dtype and shape
        self._others = [i for i in range(self.size) if i != self.rank]
        # Receives that have no message yet, by (source, tag), in the order in which they were started.
        self._started: dict[tuple[int, int], deque[list[Message]]] = defaultdict(deque)

    def split(self, name: str, ranks: Sequence[int]) -> Communicator:
        return MessageCommunicator(self._transport, name, ranks)

    def close(self) -> None:
        self._transport.close()

    # ---- the exchange

    def _exchange(
        self, what: str, parcels: Sequence[np.ndarray | None], rooms: Sequence[np.ndarray] | None = None
    ) -> list[np.ndarray | None]:
        """One array, or nothing, to each member; what each has sent to this one. The own one stays as it is.

        `rooms`: where what comes may lie, by member.
        """
        transport = self._transport
        received: list[np.ndarray | None] = [None] * self.size
        received[self.rank] = parcels[self.rank]
        with transport.lock:
            number = self._begin()
            laid = self._lay(number, parcels)
            for peer in self._others:
                if rooms is not None:
                    transport.expect(self.ranks[peer], self.name, number, rooms[peer])
                sent = laid.get(peer, parcels[peer])
                transport.post(self.ranks[peer], Message(self.name, number, what, sent))
            opened = f"{what}, memory opened"
            awaited = {peer: [what] for peer in self._others}
            for peer in self._its_shelf().new_to(number, laid) if laid else ():
                awaited[peer].append(opened)

            def arrived() -> bool:
                transport.go_on()
                for peer, calls in awaited.items():
                    while calls:
                        message = transport.next_collective(self.ranks[peer])
                        if message is None:
                            notice = transport.notice(self.ranks[peer], self.name)
                            if notice is not None:
                                self._compare(peer, notice, -1, what)
                            self._require(peer, what)
                            break
                        self._compare(peer, message, number, calls.pop(0))
                        if message.what == opened:
                            continue
                        received[peer], is_new = self._taken(number, peer, message.array, what)
                        if is_new:
                            transport.post(self.ranks[peer], Message(self.name, number, opened, None))
                return not any(awaited.values()) and transport.flushed()

            with self._waiting():
                if not transport.wait(arrived, transport.timeout_s):
                    raise self._late(what, [peer for peer in self._others if awaited[peer]] or self._others)
            if rooms is not None:
                for peer in self._others:
                    transport.expect(self.ranks[peer], self.name, number, None)
        return received

    def _begin(self) -> int:
        """The number of the next exchange."""
        number, self._number = self._number, self._number + 1
        if not self._asks_for_short:
            self._transport.begun_of[self.name] = self._number
        return number

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """While it is waited for others, who send what they start to reduce as messages."""
        started = self._transport.started
        try:
            for one in started.values():
                one.rest(True)
            yield
        except BaseException:
            self._give_up()
            raise
        finally:
            for one in started.values():
                one.rest(False)

    def _give_up(self) -> None:
        """An exchange has failed: others may still read there when this member begins something else."""
        self._short = None
        if self._shelf is not None:
            self._shelf.give_up()

    def _lay(self, number: int, parcels: Sequence[np.ndarray | None]) -> dict[int, Placed]:
        """Long arrays for members of this machine in memory that they see: where, by member."""
        near = {peer: self._transport.near.get(self.ranks[peer]) for peer in self._others}
        given = {
            peer: parcels[peer]
            for peer, process in near.items()
            if process is not None and parcels[peer] is not None and parcels[peer].nbytes > shared.LEAST_BYTES
        }
        if not given:
            return {}
        one_each = {id(array): array for array in given.values()}  # what all get is laid down once
        places = self._its_shelf().lay(number, list(one_each.values()))
        if places is None:
            return {}
        found = dict(zip(one_each, places, strict=True))
        return {peer: found[id(array)] for peer, array in given.items()}

    def _its_shelf(self) -> Shelf:
        if self._shelf is None:
            near = self._transport.near
            self._shelf = Shelf({i: near[rank] for i, rank in enumerate(self.ranks) if rank in near})
        return self._shelf

    def _taken(
        self, number: int, peer: int, array: np.ndarray | Placed | None, what: str
    ) -> tuple[np.ndarray | None, bool]:
        """What a member has sent, and whether its memory was opened for that. What lies there must be read
        before the next exchange. Errors: RuntimeError if the member has left.
        """
        if not isinstance(array, Placed):
            return array, False
        try:
            return self._its_shelf().take(number, peer, array)
        except OSError as cause:
            raise errors.runtime_error(
                what.partition("(")[0],
                f"rank {self.ranks[peer]} takes no part in {what}: its memory cannot be read: {cause}",
            ) from cause

    def _require(self, peer: int, what: str) -> None:
        """Errors: RuntimeError if the member has left."""
        why = self._transport.gone.get(self.ranks[peer])
        if why is not None:
            raise errors.runtime_error(
                what.partition("(")[0], f"rank {self.ranks[peer]} takes no part in {what}: {why}"
            )

    def _compare(self, peer: int, message: Message, number: int, what: str) -> None:
        """Errors: RuntimeError if the member does something else, as it does for the number -1."""
        if (message.group, message.number, message.what) == (self.name, number, what):
            return
        own = self._number - 1 if number < 0 else number
        mine = f"rank {self._transport.rank} calls {what} (number {own} of group {self.name!r})"
        place = f"number {message.number} of group {message.group!r}"
        other = f"rank {self.ranks[peer]} calls {message.what} ({place})"
        raise errors.runtime_error(
            what.partition("(")[0], f"ranks do not call the same collective: {mine}, but {other}",
            hint="every rank must call the same collectives in the same order, with one dtype and shape",
        )  # fmt: skip

    def _late(self, what: str, missing: Sequence[int]) -> Exception:
        ranks = [self.ranks[i] for i in missing]
        who = f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))} have"
        return errors.runtime_error(
            what.partition("(")[0],
            f"{who} not come to {what} within {self._transport.timeout_s:g} s",
            hint="MYCELIA_COMMUNICATION_TIMEOUT_S says how long is waited",
        )

    # ---- collectives

    def all_reduce(self, array: np.ndarray, reduction: str = "sum") -> np.ndarray:
        key = reduction, array.dtype, array.shape
        if key not in self._calls:
            reductions.check("all_reduce", reduction, array.dtype)
            if len(self._calls) > 256:
                self._calls.clear()
            what = f"all_reduce({reduction}, {_described(array)})"
            self._calls[key] = what, what.encode()
        what, told = self._calls[key]
        if self.size == 1:
            return reductions.combine([array], reduction)
        if self._short is not None and array.nbytes <= short.MOST_BYTES and len(told) <= short.MOST_TEXT:
            return self._short_sum(array, reduction, what, told)
        total = self._sum(array, reduction, what)
        if self._asks_for_short:
            self._open_short()
        return total

    def _sum(self, array: np.ndarray, reduction: str, what: str) -> np.ndarray:
        """By messages."""
        if array.nbytes <= WHOLE_BYTES:
            return reductions.combine(self._exchange(what, [array] * self.size), reduction)
        flat = array.reshape(-1)
        bounds = [flat.size * i // self.size for i in range(self.size + 1)]
        cuts = [slice(a, b) for a, b in zip(bounds, bounds[1:])]
        total = np.empty_like(flat)
        shares = [total[cut] for cut in cuts]
        part = shares[self.rank]
        rooms = None if self._is_near() else self._rooms(part)
        found = self._exchange(what, [flat[cut] for cut in cuts], rooms)
        reductions.combine(found, reduction, part)
        found = self._exchange(f"{what}, second half", [part] * self.size, shares)
        for peer in self._others:
            if not np.may_share_memory(found[peer], shares[peer]):
                shares[peer][...] = found[peer]
        return total.reshape(array.shape)

    def _open_short(self) -> None:
        """Short arrays go through memory from now on, where all members see one another's. All have come to
        the same collective; numbers stay those of the calls.
        """
        self._asks_for_short = False
        self._transport.forget_notices(self.name)
        near = {i: self._transport.near.get(self.ranks[i], 0) for i in self._others}

        def gather(value: Any) -> list[Any]:
            found = self.all_gather_object(value)
            self._number -= 1
            self._transport.begun_of[self.name] = self._number
            return found

        if all(gather(short.is_possible() and all(near.values()))):
            self._short = Short.of(self.rank, near, gather)

    def _short_sum(self, array: np.ndarray, reduction: str, what: str, told: bytes) -> np.ndarray:
        transport, memory = self._transport, self._short
        assert memory is not None
        with transport.lock:
            number = self._begin()
            for _ in range(short.NAPS):
                missing = memory.exchange(number, told, array)
                if missing is None:
                    return memory.combined(number, array, reduction).reshape(array.shape)
                if type(missing) is tuple:
                    break
            self._await_short(number, array, what, told)
            return memory.combined(number, array, reduction).reshape(array.shape)

    def _await_short(self, number: int, array: np.ndarray, what: str, told: bytes) -> None:
        """Waits for who is late, who is told of it. Errors: RuntimeError for who has left or calls something
        else.
        """
        transport, memory = self._transport, self._short
        for peer in self._others:
            transport.post(self.ranks[peer], Message(self.name, number, what, None, NOTICE))
        end = time.monotonic() + transport.timeout_s
        with self._waiting():
            while (missing := memory.nap(number, told, array)) is not None:
                if type(missing) is tuple:
                    peer, other = missing
                    self._compare(peer, Message(self.name, number, other.decode(), None), number, what)
                    continue
                rank = self.ranks[missing]
                message = transport.next_collective(rank) or transport.notice(rank)
                if message is not None:
                    self._compare(missing, message, -1, what)
                self._require(missing, what)
                if time.monotonic() > end:
                    raise self._late(what, [missing])
                transport.poll()
                transport.go_on()

    def _is_near(self) -> bool:
        """Whether all members see one another's memory."""
        return all(self.ranks[peer] in self._transport.near for peer in self._others)

    def _rooms(self, like: np.ndarray) -> list[np.ndarray]:
        """Memory for an array like this from each member, kept between calls: new pages cost as much as
        sums.
        """
        size = like.nbytes
        if self._room.nbytes < size * self.size:
            self._room = np.empty(size * self.size, np.uint8)
        return [self._room[i * size : (i + 1) * size].view(like.dtype) for i in range(self.size)]

    def start_reduction(
        self,
        arrays: Sequence[np.ndarray],
        reduction: str = "sum",
        divisor: float = 1,
        name: str = "",
        scatters: bool = False,
    ) -> int:
        if self._reducing is None:
            self._reducing = Reducing(self._transport, self.name, self.ranks, self._late)
        return self._reducing.start(arrays, reduction, divisor, name, scatters)

    def start_sums(self, tensors: tuple, divisor: float = 1, name: str = "", scatters: bool = False) -> int:
        if self._reducing is None:
            self._reducing = Reducing(self._transport, self.name, self.ranks, self._late)
        return self._reducing.start_sums(tensors, divisor, name, scatters)

    def finish_sums(self, number: int) -> tuple:
        found = None if self._reducing is None else self._reducing.finish_sums(number)
        return super().finish_sums(number) if found is None else found

    def finish_reduction(self, number: int) -> list[np.ndarray]:
        if self._reducing is None:
            raise ValueError(f"finish_reduction: the group {self.name!r} has started none")
        return self._reducing.finish(number)

    def reduce(self, array: np.ndarray, root: int, reduction: str = "sum") -> np.ndarray | None:
        reductions.check("reduce", reduction, array.dtype)
        what = f"reduce({reduction}, {_described(array)}, to rank {self.ranks[root]})"
        parts = self._exchange(what, [array if i in (root, self.rank) else None for i in range(self.size)])
        return reductions.combine(parts, reduction) if self.rank == root else None

    def reduce_scatter(self, parts: Sequence[np.ndarray], reduction: str = "sum") -> np.ndarray:
        self._require_parts("reduce_scatter", parts)
        reductions.check("reduce_scatter", reduction, parts[0].dtype)
        sizes = ", ".join(str(list(part.shape)) for part in parts)
        what = f"reduce_scatter({reduction}, {reductions.name_of(parts[0].dtype)} {sizes})"
        return reductions.combine(self._exchange(what, parts), reduction)

    def all_gather(self, array: np.ndarray, uneven: bool = False) -> list[np.ndarray]:
        what = f"all_gather({reductions.name_of(array.dtype) if uneven else _described(array)})"
        return self._with_own(self._exchange(what, [array] * self.size))

    def gather(self, array: np.ndarray, root: int, uneven: bool = False) -> list[np.ndarray] | None:
        kind = reductions.name_of(array.dtype) if uneven else _described(array)
        what = f"gather({kind}, to rank {self.ranks[root]})"
        parts = self._exchange(what, [array if i in (root, self.rank) else None for i in range(self.size)])
        return self._with_own(parts) if self.rank == root else None

    def scatter(self, parts: Sequence[np.ndarray] | None, root: int) -> np.ndarray:
        if self.rank == root:
            self._require_parts("scatter", parts)
        given = parts if self.rank == root else [None] * self.size
        found = self._exchange(f"scatter(from rank {self.ranks[root]})", given)[root]
        return _owned(found, self.rank == root)

    def broadcast(self, array: np.ndarray, root: int) -> np.ndarray:
        what = f"broadcast({_described(array)}, from rank {self.ranks[root]})"
        mine = self.rank == root
        found = self._exchange(what, [array if mine else None] * self.size)[root]
        return _owned(found, mine)

    def all_to_all(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        self._require_parts("all_to_all", parts)
        return self._with_own(self._exchange(f"all_to_all({reductions.name_of(parts[0].dtype)})", parts))

    def barrier(self) -> None:
        self._exchange("barrier()", [None] * self.size)

    def all_gather_object(self, value: Any) -> list[Any]:
        found = self._exchange("all_gather_object()", [as_bytes(value)] * self.size)
        return [from_bytes(part) for part in found]

    def _require_parts(self, owner: str, parts: Sequence[np.ndarray] | None) -> None:
        if parts is None or len(parts) != self.size:
            count = "none" if parts is None else len(parts)
            raise ValueError(f"{owner}: one array for each of {self.size} members is needed, but got {count}")

    def _with_own(self, parts: list[np.ndarray | None]) -> list[np.ndarray]:
        """All parts as arrays that the caller may keep and change."""
        return [_owned(part, i == self.rank) for i, part in enumerate(parts)]

    # ---- from one to one

    def start_send(self, array: np.ndarray, to: int, tag: int = 0) -> Pending:
        self._require_other("send", to)
        transport, what = self._transport, f"send(tag {tag}, to rank {self.ranks[to]})"
        with transport.lock:
            self._require(to, what)
            transport.post(self.ranks[to], Message(self.name, tag, "", array.copy()))
        return Pending(lambda: self._finish_send(to, what))

    def _finish_send(self, to: int, what: str) -> None:
        def sent() -> bool:
            if self._transport.flushed():
                return True
            self._require(to, what)
            return False

        with self._transport.lock:
            if not self._transport.wait(sent, self._transport.timeout_s):
                raise self._late(what, [to])

    def start_receive(self, source: int, tag: int = 0) -> Pending:
        self._require_other("receive", source)
        place: list[Message] = []
        with self._transport.lock:
            self._started[source, tag].append(place)
        return Pending(lambda: self._finish_receive(source, tag, place))

    def _finish_receive(self, source: int, tag: int, place: list[Message]) -> np.ndarray | None:
        what = f"receive(tag {tag}, from rank {self.ranks[source]})"

        def arrived() -> bool:
            while not place:
                message = self._transport.next_direct(self.ranks[source], self.name, tag)
                if message is None:
                    self._require(source, what)
                    return False
                self._started[source, tag].popleft().append(message)
            return True

        with self._transport.lock:
            try:
                if not self._transport.wait(arrived, self._transport.timeout_s):
                    raise self._late(what, [source])
            finally:
                if not place:  # one that failed takes no later message
                    left = [other for other in self._started[source, tag] if other is not place]
                    self._started[source, tag] = deque(left)
        return place[0].array

    def _require_other(self, owner: str, peer: int) -> None:
        if peer == self.rank or not 0 <= peer < self.size:
            raise ValueError(
                f"{owner}: the rank must be another one of [0, {self.size}) than {self.rank}, but got {peer}"
            )
