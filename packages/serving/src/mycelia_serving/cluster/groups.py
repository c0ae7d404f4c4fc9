"""The versions that a master knows, and which of them a request means."""

from __future__ import annotations

from collections.abc import Callable

from mycelia_serving.cluster.group import Group
from mycelia_serving.cluster.worker_api import Worker
from mycelia_serving.cluster.worker_slots import WorkerSlot
from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.request import Request


class Groups:
    """Servable -> version -> `Group`, and those that are being taken away. make: a new group."""

    def __init__(self, make: Callable[[str, int], Group]) -> None:
        self._make = make
        self._served: dict[str, dict[int, Group]] = {}
        self.retired: list[Group] = []

    def served(self) -> list[Group]:
        """Those that take requests."""
        return [group for versions in self._served.values() for group in versions.values()]

    def all(self) -> list[Group]:
        """Those that take requests, and those that only answer what they have."""
        return self.served() + self.retired

    def ready(self) -> bool:
        """Whether there is a servable, and each has a worker."""
        return bool(self._served) and all(
            any(group.worker_slots for group in versions.values()) for versions in self._served.values()
        )

    def get(self, name: str, version: int) -> Group | None:
        """A version that is known and not retired."""
        return self._served.get(name, {}).get(version)

    def open(self, name: str, version: int) -> Group:
        """A version, made known at need."""
        versions = self._served.setdefault(name, {})
        group = versions.get(version)
        if group is None:
            group = versions[version] = self._make(name, version)
        return group

    def retire(self, name: str, version: int) -> Group | None:
        """Let a version take nothing new."""
        versions = self._served.get(name, {})
        group = versions.pop(version, None)
        if group is None:
            return None
        if not versions:
            del self._served[name]
        group.retired = True
        self.retired.append(group)
        return group

    def find(self, worker: Worker) -> tuple[Group, WorkerSlot] | None:
        """Where a worker is."""
        group = self.get(worker.servable, worker.version)
        for one in (group, *self.retired) if group else self.retired:
            for slot in one.worker_slots:
                if slot.worker is worker:
                    return one, slot
        return None

    def choose(self, request: Request) -> Group:
        """The version that a request means. Errors: ServingError NOT_FOUND."""
        versions = self._served.get(request.servable)
        if versions is None:
            raise ServingError(Code.NOT_FOUND, f"servable {clip(request.servable)!r} is not served")
        if request.version:
            group = versions.get(request.version)
            if group is None:
                text = f"servable {request.servable!r} has no version {clip(request.version)} that runs"
                raise ServingError(Code.NOT_FOUND, text)
            return group
        if len(versions) == 1:
            (group,) = versions.values()
            return group
        return max(versions.values(), key=_newest)


def _newest(group: Group) -> tuple[bool, bool, int]:
    """Order of the versions of a servable: those that may be asked and can answer, then by number."""
    return group.published and bool(group.worker_slots), group.published, group.version
