"""The cache's place in a pipeline: what `cache=` takes, and the exchange of cached nodes before reading.

Core knows only this interface. A distribution that implements the hook `mycelia_dataset_cache` brings the
client: an object with ``rewritten(node)``, the node that stands in for a cached one, and ``stat()``.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import TYPE_CHECKING

from mycelia.dataset import checks, nodes
from mycelia.engine.base import config, errors

if TYPE_CHECKING:
    from mycelia.dataset.pipeline import Dataset

_OWNER = "DatasetCache"
UINT32_MAX = 2**32 - 1
CONNECTIONS, PREFETCH = 12, 20  # when none are given, as in MindSpore
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


class DatasetCache:
    """A cache of rows that lives in a server: `cache=` of a source or of `map` takes it.

    `session_id`: number given by the server, or None for a session of this process alone. `size`: MB of
    memory, 0 for no limit of its own. `spilling`: rows that find no memory go to the server's disk.
    `hostname`, `port`: the server, by default those of the settings. `num_connections`: requests under way at
    once with a server on another host; `prefetch_size`: rows that each asks for.

    `on_failure`, when the server cannot be reached: None raises at the start of a pipeline and goes on from
    the source in the middle of one, "error" always raises, "bypass" always goes on. `on_full`, when a source
    without numbered rows finds no room: "error", or "source" to read it without the cache. `check_content`:
    the files' content, not only their sizes and times, tells whether two pipelines are the same.

    Nothing is contacted before a pipeline is read. Errors: TypeError, ValueError; RuntimeError for another
    host without a token or certificates.
    """

    def __init__(
        self,
        session_id,
        size=0,
        spilling=False,
        hostname=None,
        port=None,
        num_connections=None,
        prefetch_size=None,
        *,
        on_failure=None,
        on_full="error",
        check_content=False,
    ):
        if session_id is not None:
            nodes.integer(_OWNER, "session_id", session_id, 1, UINT32_MAX)
        nodes.integer(_OWNER, "size", size, 0, 2**63 - 1)
        nodes.of_type(_OWNER, "spilling", spilling, bool)
        nodes.of_type(_OWNER, "hostname", hostname, str, type(None))
        if hostname is not None:
            _check_host(hostname)
        if port is not None:
            nodes.integer(_OWNER, "port", port, 1025, 65535)
        if num_connections is not None:
            nodes.integer(_OWNER, "num_connections", num_connections, 1)
        if prefetch_size is not None:
            nodes.integer(_OWNER, "prefetch_size", prefetch_size, 1)
        for name, value, choices in (
            ("on_failure", on_failure, (None, "error", "bypass")),
            ("on_full", on_full, ("error", "source")),
        ):
            checks.choice(_OWNER, name, value, choices)
        nodes.of_type(_OWNER, "check_content", check_content, bool)
        self.session_id, self.size, self.spilling = session_id, size, spilling
        self.hostname, self.port = hostname, port
        self.num_connections, self.prefetch_size = num_connections, prefetch_size
        self.on_failure, self.on_full, self.check_content = on_failure, on_full, check_content
        self._shared = SimpleNamespace(client=None)  # copies of this object share the client

    @property
    def client(self):
        """What a plugin made for this cache. RuntimeError if none is installed."""
        if self._shared.client is None:
            from mycelia.engine.base import plugins

            self._shared.client = plugins.manager().hook.mycelia_dataset_cache(config=self)
            if self._shared.client is None:
                raise errors.runtime_error(
                    _OWNER,
                    "no installed distribution brings the dataset cache",
                    hint="pip install mycelia-cache",
                )
        return self._shared.client

    def get_stat(self):
        """What the server tells of this cache: avg_cache_sz (bytes per row), num_mem_cached, num_disk_cached,
        num_hit, num_miss, mem_bytes, disk_bytes, state, min_row_id, max_row_id.

        Errors: RuntimeError before a pipeline with this cache was read, or without the server.
        """
        if self._shared.client is None:
            raise errors.runtime_error(_OWNER, "the cache is not in use yet: read a pipeline with it first")
        return self._shared.client.stat()

    def describe(self) -> dict:
        """The cache as a dict, as in a serialized pipeline."""
        return {
            "session_id": self.session_id or 0,
            "cache_memory_size": self.size,
            "spill": self.spilling,
            "hostname": self.hostname or config.get("cache_host"),
            "port": self.port or config.get("cache_port"),
            "num_connections": self.num_connections or CONNECTIONS,
            "cache_prefetch_size": self.prefetch_size or PREFETCH,
        }

    def __deepcopy__(self, memo):
        return copy.copy(self)

    def __getstate__(self):
        return {**self.__dict__, "_shared": SimpleNamespace(client=None)}  # another process connects itself


def _check_host(hostname: str) -> None:
    if hostname in _LOCAL_HOSTS or (hostname and (config.get("cache_token") or config.get("cache_tls"))):
        return
    raise errors.runtime_error(
        _OWNER,
        f"Invalid host interface: {hostname!r}. The server must be on the same host: 127.0.0.1.",
        hint="a server on another host needs MYCELIA_CACHE_TOKEN or MYCELIA_CACHE_TLS",
    )


def checked(owner: str, cache) -> DatasetCache | None:
    """What is given as `cache=`. TypeError for anything but a DatasetCache or None."""
    return nodes.of_type(owner, "cache", cache, DatasetCache, type(None))


def rewritten(dataset: Dataset) -> Dataset:
    """The pipeline to read: nodes with a cache and all below them are exchanged for what serves their rows.

    The given nodes stay as they are. Errors: RuntimeError for a cache where none may be, or no server.
    """
    if all(node.cache is None for node in dataset.walk()):
        return dataset
    return _exchanged(dataset)


def _exchanged(node: Dataset) -> Dataset:
    if node.cache is not None:
        return node.cache.client.rewritten(node)
    children = [_exchanged(child) for child in node.children]
    if all(new is old for new, old in zip(children, node.children)):
        return node
    return with_children(node, children)


def with_children(node: Dataset, children: list[Dataset]) -> Dataset:
    """A copy of a node that reads from `children`; it is in no pipeline of the user's."""
    clone = copy.copy(node)
    clone.children, clone.parent = children, []
    return clone
