"""More workers while requests queue, fewer when they are idle."""

from __future__ import annotations

import time
from dataclasses import dataclass

from mycelia_serving.cluster.master import Master


@dataclass(frozen=True)
class ScalePolicy:
    """Between how many workers a servable is kept, and by what.

    queue_s: requests that wait for longer ask for a worker more. idle_s: so long nothing must have waited,
    and one worker fewer must have been enough, before one goes.
    """

    least: int
    most: int
    queue_s: float = 0.1
    idle_s: float = 30.0

    @classmethod
    def parse(cls, text: str) -> ScalePolicy:
        """From `1-4`. Errors: RuntimeError for other texts."""
        least, dash, most = text.partition("-")
        if not (dash and least.isdecimal() and most.isdecimal()) or not 1 <= int(least) <= int(most) <= 64:
            raise RuntimeError(f"a range of workers is LEAST-MOST, both 1 to 64, got {text!r}")
        return cls(int(least), int(most))


class Scaler:
    """Says how many workers a servable should have now."""

    def __init__(self, policy: ScalePolicy) -> None:
        self.policy = policy
        self._calm_since: float | None = None

    def wish(self, master: Master, name: str, version: int, count: int, now: float | None = None) -> int:
        """The number of workers that is right, given `count`. Asked about once a second."""
        now = time.monotonic() if now is None else now
        policy = self.policy
        waited, outstanding, slots = master.load(name, version, now)
        if waited > policy.queue_s:
            self._calm_since = None
            return max(min(count + 1, policy.most), policy.least)
        crowded = 2 * outstanding * count > slots * (count - 1) and count > 1
        if waited or crowded:
            self._calm_since = None
        elif self._calm_since is None:
            self._calm_since = now
        elif now - self._calm_since >= policy.idle_s and count > policy.least:
            self._calm_since = now
            return count - 1
        return max(count, policy.least)
