"""Reductions that run beside other work: they are started with arrays, and asked for the sums later.

Their messages are a lane of their own: all members of a group start them in the same order, but where among
the collectives that are waited for need not be the same, as long as nobody waits for sums that another starts
behind a collective. Whoever waits for any message moves theirs, too, and so does whoever starts the next one;
a transport may have a thread for it (`Transport.begun`).

Reductions of two members, and short ones, take one round: all lay down their arrays, and each adds those of
all. Long ones of more take two: each adds its share of the elements and gives the sums to the others. Sums
are made in the order of ranks in either case: the bits are those of `all_reduce`.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.communication import reductions, shared
from mycelia.engine.communication.board import ENTRIES, MESSAGES, NOTHING, TURNS, Boards, see
from mycelia.engine.communication.direct import Directs
from mycelia.engine.communication.recipes import Recipe, recipe_of
from mycelia.engine.communication.reduction import NO_ELEMENTS, Reduction
from mycelia.engine.communication.shared import Placed, Pool
from mycelia.engine.communication.transport import (
    ADDED,
    BOARD,
    GIVEN,
    OPENED,
    SEEN,
    TAKEN,
    WRITTEN,
    Message,
    Transport,
    fresh,
)

_TOLD_BYTES = 1 << 20  # that memory of this size may be written again is worth a message of its own
_FORGOTTEN = 4096  # so many later nobody asks for one any more: there was an error in between
_LOOK_S = 0.05  # between two looks at boards while it is waited for messages
_SPIN_S = 1e-5  # that an entry is looked at all the time: falling asleep and waking costs as much
_NAP_S = 1e-3  # that it is slept for one, at most
_NAPS_S = 5e-3  # that it is looked for entries alone, before messages are waited for, too
_RECIPES = 256  # what is known of calls, at most
_GENERATION = 1 << 40  # numbers of a group begin behind those of one that had its name before


class Reducing:
    """The started reductions of a group. `late`: the error for members that do not come to a call in time."""

    def __init__(
        self,
        transport: Transport,
        name: str,
        ranks: Sequence[int],
        late: Callable[[str, Sequence[int]], Exception],
    ) -> None:
        self._transport, self._late, self._name = transport, late, name
        self._ranks, self._size = tuple(ranks), len(ranks)
        self._rank = self._ranks.index(transport.rank)
        self._others = [i for i in range(self._size) if i != self._rank]
        # Others may have been members of a group of this name before, whose messages are still under way.
        self._key = f"{name} {zlib.crc32(repr(self._ranks).encode()):x}"
        self._member = {rank: i for i, rank in enumerate(self._ranks)}
        self._near = {
            i: transport.near[self._ranks[i]] for i in self._others if self._ranks[i] in transport.near
        }
        self._pool = Pool(self._near)
        self._changed = threading.Condition(transport.lock)
        generation = transport.generations[self._key]
        transport.generations[self._key] += 1
        self._first = self._number = self._ended = generation * _GENERATION
        self._ends_of = [self._number] * self._size  # how far the members have come
        self._done: set[int] = set()  # what has ended beyond `_ended`
        self._open: dict[int, Reduction] = {}
        transport.started[self._key] = self
        self._boards = Boards(self._near)
        self._recipes: dict[tuple, Recipe] = {}
        self._direct = Directs(self._boards, self._others, self._rank)
        self.rest(False)
        if self._boards.own is not None:
            for peer in self._near:
                self._send(peer, Message(self._key, self._number, "", self._boards.place, BOARD))
            for peer, message in transport.early.pop((self._key, self._number), ()):
                self._arrived(peer, message)

    # ---- what users call

    def start_sums(self, tensors: tuple, divisor: float, name: str, scatters: bool) -> int:
        """As `start`, of sums of tensors on the host."""
        kind = divisor, name, scatters, tensors[0].dtype, tuple([x.shape for x in tensors])
        with self._transport.lock:
            number, found = self._number, None
            if (self._key, number) not in self._transport.early:
                found = self._direct.start(kind, number, self._ended, self._free(), tensors)
            if found is not None:
                self._number += 1
                self._direct.take_back(number - _FORGOTTEN)
                way, listens = found
                for peer in self._others if listens else ():
                    self._send(peer, Message(self._key, number, way.recipe.what, None, WRITTEN, self._ended))
                return number
        return self.start([reductions.array_of(x) for x in tensors], "sum", divisor, name, scatters, kind)

    def start(
        self,
        arrays: Sequence[np.ndarray],
        reduction: str,
        divisor: float,
        name: str,
        scatters: bool,
        kind: tuple | None = None,
    ) -> int:
        """The number of a reduction of these arrays, of one dtype, which may be changed at once.

        `divisor`: of the sums, after they were rounded; `name`: what must be the same on all members besides
        dtype and elements; `scatters`: of the one array, which is as many equal parts as there are members,
        each member gets its own part only; `kind`: of tensors that come again. Errors: as collectives have.
        """
        shapes = tuple([array.shape for array in arrays])
        key = reduction, divisor, name, scatters, arrays[0].dtype, shapes
        recipe = self._recipes.get(key)
        if recipe is None:
            if len(self._recipes) >= _RECIPES:
                self._recipes.clear()
            recipe = self._recipes[key] = recipe_of(self._size, *key)
        started, transport = Reduction(recipe), self._transport
        with transport.lock:
            number, self._number = self._number, self._number + 1
            self._open.pop(number - _FORGOTTEN, None)
            if kind is not None and not transport.has_mover:
                started.direct = self._direct.way(kind, recipe, arrays[0].dtype)
            is_written = self._lay(number, started, arrays)
            started.begin(self._rank, self._size)
            self._open[number] = started
            self._tell(number, started, is_written)
            if transport.early:
                for message in transport.early.pop((self._key, number), ()):
                    self._arrived(*message)
        if len(self._open) > 1 or not is_written or transport.has_mover:
            transport.begun()
        return number

    def _tell(self, number: int, started: Reduction, is_written: bool) -> None:
        """Lets the others know of what was laid down, by the board or by messages."""
        boards, awaits = self._boards, False
        if is_written:
            see()
        for peer in self._others:
            if not is_written or peer not in boards.readers or peer not in boards.others:
                cut = started.cuts[peer] if started.cuts else slice(started.recipe.count)
                self._give(number, started, peer, GIVEN, cut)
                continue
            said = boards.others[peer].said
            awaits = awaits or said == ENTRIES
            if said == MESSAGES:
                self._post(number, started, peer, WRITTEN, None)
        if awaits and boards.own is not None:
            boards.own.wake(number)

    def finish(self, number: int) -> list[np.ndarray]:
        """The sums of a reduction that was started, in memory of their own.

        Errors: RuntimeError for a member that is missing or has started another, and for a number that is
        none.
        """
        while True:
            with self._transport.lock:
                started = self._started(number)
                if started is None:
                    raise errors.runtime_error("all_reduce", "these sums were taken, or never started")
                self.sort()
                if started.failure is not None:
                    raise started.failure
                if self._is_over(started):
                    del self._open[number]
                    if started.direct is not None and started.room >= 0:
                        started.direct.opened(started.room, number)
                    break
                job = self._transport.next_job()
                if job is None:
                    self._await(number, started)
            if job is not None:
                job()
        total = started.total
        assert total is not None  # by `_is_over`
        return [total[at : at + size].reshape(shape) for at, size, shape in started.recipe.results]

    def finish_sums(self, number: int) -> tuple | None:
        """As `finish`, the sums as tensors; None if that gives them."""
        with self._transport.lock:
            found = self._direct.finish(number)
            if found is None:
                return None
            ended, sums = found
            for peer in self._near:
                self._ends_of[peer] = max(self._ends_of[peer], ended)
            self._count(number)
        return sums

    def _started(self, number: int) -> Reduction | None:
        """A reduction that was started, which from now on goes as those that no native call makes."""
        found = self._direct.take_back(number)
        if found is None:
            return self._open.get(number)
        way, own, place = found
        started = self._open[number] = Reduction(way.recipe)
        started.direct, started.own, started.place = way, own, place
        started.begin(self._rank, self._size)
        return started

    def _await(self, number: int, started: Reduction) -> None:
        """Until something can be done for a reduction, or another thread has made it. Errors: as `finish`."""
        if started.is_taken:
            self._changed.wait(self._transport.timeout_s)
        elif not self._wait(number, started):
            late = sorted(started.awaited | started.opening) or self._others
            raise self._late(started.what, late)

    def _wait(self, number: int, started: Reduction) -> bool:
        """Until something can be done for a reduction; False if time was over first."""
        begin = time.monotonic()
        while self._nap(number, started) and time.monotonic() - begin < _NAPS_S:
            if self._may_go_on(started):
                return True
        end = begin + self._transport.timeout_s
        look_s = _LOOK_S if self._boards.others else self._transport.timeout_s
        self.rest(True)
        try:
            while not self._transport.wait(lambda: self._may_go_on(started), look_s):
                if time.monotonic() > end:
                    return False
            return True
        finally:
            self.rest(False)

    def _nap(self, number: int, started: Reduction) -> bool:
        """Waits a moment for the entry of a member; False where messages are what has to be waited for."""
        own, others = self._boards.own, self._boards.others
        if own is None or self._transport.has_mover or started.phase != GIVEN:
            return False
        peer = next((peer for peer in started.awaited if peer in others), None)
        if peer is None or not self._transport.flushed():
            return False
        if not others[peer].wait(number, _SPIN_S, 0):
            own.say(ENTRIES)
            others[peer].wait(number, 0, _NAP_S)
            own.say(NOTHING)
        return True

    def rest(self, value: bool) -> None:
        if self._boards.own is not None:
            self._boards.own.say(MESSAGES if value or self._transport.has_mover else NOTHING)

    # ---- messages

    def sort(self) -> None:
        """Takes what has come."""
        queue = self._transport.of_started[self._key]
        while queue:
            source, message = queue.popleft()
            self._arrived(self._member[source], message)
        if self._boards.others:
            for number, started in self._open.items():
                if started.phase == GIVEN and started.awaited:
                    self._look(number, started)

    def _arrived(self, peer: int, message: Message) -> None:
        self._ends_of[peer] = max(self._ends_of[peer], message.ended)
        is_given = message.phase == GIVEN  # not on the board
        started = self._started(message.number) if is_given else self._open.get(message.number)
        if message.phase in (BOARD, SEEN) and message.number == self._first:
            if message.phase == SEEN:
                self._boards.readers.add(peer)
            elif isinstance(message.array, Placed) and self._boards.open(peer, message.array):
                self._send(peer, Message(self._key, self._first, "", None, SEEN))
        elif started is not None:
            self._take(message.number, started, peer, message)
        elif message.number >= self._number and message.phase not in (TAKEN, WRITTEN):
            self._transport.early[self._key, message.number].append((peer, message))

    def _look(self, number: int, started: Reduction) -> None:
        """Takes what is written on boards for a reduction."""
        for peer in tuple(started.awaited):
            board = self._boards.others.get(peer)
            entry = None if board is None else board.read(number)
            if entry is None:
                continue
            place = Placed(started.own.dtype, (entry.elements,), *entry.place)
            what = started.what if entry.what == started.recipe.told else entry.what.decode()
            self._take(number, started, peer, Message(self._key, number, what, place, GIVEN, entry.ended))
            self._ends_of[peer] = max(self._ends_of[peer], entry.ended)
            part = started.parts[peer]
            if started.cuts and part is not None:
                started.parts[peer] = part[started.cuts[self._rank]]

    def _take(self, number: int, started: Reduction, peer: int, message: Message) -> None:
        if message.what != started.what:
            place = f"(number {number % _GENERATION} of those of group {self._name!r})"
            started.failure = started.failure or _not_the_same(
                f"rank {self._ranks[self._rank]} calls {started.what} {place}",
                f"rank {self._ranks[peer]} calls {message.what} {place}",
            )
        elif message.phase == OPENED:
            started.opening.discard(peer)
        elif message.phase == ADDED or (message.phase == started.phase and peer in started.awaited):
            array = message.array
            if isinstance(array, Placed):
                array = self._opened(number, started, peer, array)
            if message.phase == started.phase:
                started.parts[peer] = array
                started.awaited.discard(peer)
            elif array is not None:
                started.early.append((peer, array))

    def _opened(self, number: int, started: Reduction, peer: int, place: Placed) -> np.ndarray | None:
        try:
            array, is_new = self._pool.take(number, peer, place)
        except OSError as cause:
            started.failure = started.failure or errors.runtime_error(
                "all_reduce",
                f"rank {self._ranks[peer]} takes no part in {started.what}: "
                f"its memory cannot be read: {cause}",
            )
            return None
        if is_new:
            self._post(number, started, peer, OPENED, None)
        if started.direct is not None:
            started.direct.learn(peer, place.segment, self._pool.memory(peer, place.segment))
        return array

    def _post(self, number: int, started: Reduction, peer: int, phase: int, array) -> None:
        self._send(peer, Message(self._key, number, started.what, array, phase, self._ended))

    def _send(self, peer: int, message: Message) -> None:
        self._transport.post(self._ranks[peer], message)

    def _give(self, number: int, started: Reduction, peer: int, phase: int, cut: slice) -> None:
        """Sends a member elements of `own`."""
        array = started.own[cut]
        place = started.place if peer in self._near else None
        if place is None:
            self._post(number, started, peer, phase, array)
            return
        offset = place.offset + (cut.start or 0) * array.itemsize
        self._post(number, started, peer, phase, place._replace(shape=array.shape, offset=offset))

    def _lay(self, number: int, started: Reduction, arrays: Sequence) -> bool:
        """Copies the arrays to where others see them, or together; whether that is written on the board."""
        recipe, dtype, board = started.recipe, arrays[0].dtype, self._boards.own
        free = self._free()
        is_short = recipe.count * dtype.itemsize <= shared.LEAST_BYTES
        room = None
        shown = None if started.direct is None else started.direct.shown()
        if shown is not None:
            started.room, *room = shown
        elif self._near and not (is_short and len(self._boards.readers) < len(self._others)):
            room = self._pool.room(number, free, dtype, recipe.count)
        if room is None:
            started.own = fresh(dtype, recipe.count)
        else:
            started.own, started.place, started.opening = room
        _C.lay_down(started.own, recipe.offsets, list(arrays))
        if board is None or started.place is None or number - free >= TURNS:
            return False
        return board.write(number, self._ended, started.place, recipe.count, recipe.told)

    # ---- going on

    def next_job(self) -> Callable[[], None] | None:
        for number, started in self._open.items():
            if started.is_ready:
                started.is_taken = True
                return partial(self._add, number, started)
        return None

    def is_on_its_way(self) -> bool:
        return any(one.total is None and one.failure is None for one in self._open.values())

    def _add(self, number: int, started: Reduction) -> None:
        """Makes sums, outside of the lock: other threads may meanwhile start others."""
        total, failure = None, None
        try:
            total = self._sums(started)
        except Exception as cause:  # whoever asks for the sums is told, in whichever thread this runs
            failure = cause
        with self._transport.lock:
            started.is_taken, started.failure = False, failure
            if total is not None:
                self._end(number, started, total)
            elif failure is None:
                self._give_sums(number, started)
            self._changed.notify_all()

    def _sums(self, started: Reduction) -> np.ndarray | None:
        """What this member gets; None if others need the sums of its share first, which are made in place."""
        parts, own = started.parts, started.own
        if started.phase == ADDED:
            total = fresh(own.dtype, own.size)
            for part, share in zip(parts, started.cuts):
                total[share] = part
            return total
        recipe = started.recipe
        shares = bool(started.cuts) and not recipe.scatters
        target = own[started.cuts[self._rank]] if shares else fresh(own.dtype, parts[self._rank].size)
        reductions.combine_blocks(parts, recipe.reduction, recipe.divisor, target)
        return None if shares else target

    def _give_sums(self, number: int, started: Reduction) -> None:
        """Begins the second round."""
        cut = started.cuts[self._rank]
        started.phase, started.parts = ADDED, [None] * self._size
        started.parts[self._rank], started.awaited = started.own[cut], set(self._others)
        for peer, array in started.early:
            started.parts[peer] = array
            started.awaited.discard(peer)
        for peer in self._others:
            self._give(number, started, peer, ADDED, cut)

    def _free(self) -> int:
        """Below which number nothing is read any more in this process's memory."""
        return min([self._ended, *[self._ends_of[peer] for peer in self._near]])

    def _count(self, number: int) -> None:
        """A reduction has ended here."""
        self._done.add(number)
        while self._ended in self._done:
            self._done.remove(self._ended)
            self._ended += 1

    def _end(self, number: int, started: Reduction, total: np.ndarray) -> None:
        started.total, started.parts = total, []
        self._count(number)
        if started.place is not None and started.own.nbytes >= _TOLD_BYTES:
            for peer in self._near:
                self._post(number, started, peer, TAKEN, None)
        started.own = NO_ELEMENTS

    # ---- waiting

    def _is_over(self, started: Reduction) -> bool:
        gone = self._transport.gone
        if started.opening:  # who has gone reads nothing any more
            started.opening -= {peer for peer in started.opening if self._ranks[peer] in gone}
        return started.total is not None and not started.opening and self._transport.flushed()

    def _may_go_on(self, started: Reduction) -> bool:
        """Whether `finish` has something to do after messages came. Errors: RuntimeError for a member that
        will never send what is waited for.
        """
        for other in tuple(self._transport.started.values()):
            other.sort()
        if started.failure is not None or self._is_over(started):
            return True
        if any(one.is_ready for one in self._open.values()):
            return True
        for peer in started.awaited:
            rank = self._ranks[peer]
            why = self._transport.gone.get(rank)
            if why is not None:
                raise errors.runtime_error(
                    "all_reduce", f"rank {rank} takes no part in {started.what}: {why}"
                )
            waiting = None
            if started.phase == GIVEN:
                waiting = self._transport.first_collective(rank) or self._transport.notice(rank)
            if waiting is not None:  # it goes on when this rank does the same, which waits here
                raise _not_the_same(
                    f"rank {self._ranks[self._rank]} waits for {started.what} of group {self._name!r}",
                    f"rank {rank} calls {waiting.what} (number {waiting.number} of group {waiting.group!r})",
                )
        return False


def _not_the_same(mine: str, other: str) -> Exception:
    return errors.runtime_error(
        "all_reduce", f"ranks do not call the same collective: {mine}, but {other}",
        hint="every rank must call the same collectives in the same order, with one dtype and shape",
    )  # fmt: skip
