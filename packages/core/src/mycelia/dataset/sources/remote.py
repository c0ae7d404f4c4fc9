"""MindRecord files in object storage (OBS, MinIO, S3), through fsspec: every process keeps its own copies."""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path

from mycelia.dataset import nodes
from mycelia.dataset.samplers import Shuffle
from mycelia.dataset.sources.mindrecord import MindDataset
from mycelia.engine.base import errors

_OWNER = "OBSMindDataset"
_SCHEMES = ("s3://", "obs://")


def _store(server: str, key: str, secret: str):
    """The file system behind an S3 endpoint. ImportError without fsspec and s3fs."""
    try:
        import fsspec

        return fsspec.filesystem("s3", key=key, secret=secret, client_kwargs={"endpoint_url": server})
    except ImportError:
        raise ImportError(f"{_OWNER} reads object storage with fsspec: pip install fsspec s3fs") from None


def _key(name: str, value: str) -> str:
    """A path in the store: bucket and object of 's3://bucket/object'."""
    for scheme in _SCHEMES:
        if value.startswith(scheme):
            return value[len(scheme) :]
    raise errors.value_error(_OWNER, f"{name} must be as s3://bucket/object, but got {value!r}")


class OBSMindDataset(MindDataset):
    """MindRecord files 's3://bucket/object' of an endpoint `server` with the keys `ak` and `sk`.

    The files, and their indexes, are copied when the dataset is made and removed with it. `sync_obs_path`,
    where MindSpore's nodes wait for each other, must be there; nothing is written to it. Errors: TypeError,
    ValueError; ImportError without fsspec and s3fs; RuntimeError for what the store has not.
    """

    def __init__(
        self,
        dataset_files,
        server,
        ak,
        sk,
        sync_obs_path,
        columns_list=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        shard_equal_rows=True,
    ):
        nodes.of_type(_OWNER, "dataset_files", dataset_files, list)
        for name in dataset_files:
            nodes.of_type(_OWNER, "every element of dataset_files", name, str)
        for name, value in (("server", server), ("ak", ak), ("sk", sk), ("sync_obs_path", sync_obs_path)):
            nodes.of_type(_OWNER, name, value, str)
        nodes.of_type(_OWNER, "columns_list", columns_list, list, type(None))
        nodes.of_type(_OWNER, "shard_equal_rows", shard_equal_rows, bool)
        if not server.startswith(("http://", "https://")):
            raise errors.value_error(_OWNER, f"server must start with http:// or https://, not {server!r}")
        if (num_shards is None) != (shard_id is None):
            raise errors.runtime_error(_OWNER, "num_shards and shard_id must be given together")
        self._folder = tempfile.TemporaryDirectory(prefix="mycelia-obs-")
        self._ended = weakref.finalize(self, self._folder.cleanup)
        store = _store(server, ak, sk)
        if not store.exists(_key("sync_obs_path", sync_obs_path)):
            raise errors.runtime_error(_OWNER, f"sync_obs_path {sync_obs_path!r} is not there")
        copies = [
            _copy(store, _key("dataset_files", name), Path(self._folder.name)) for name in dataset_files
        ]
        super().__init__(copies, columns_list, None, shuffle, num_shards, shard_id)
        missing = [name for name in columns_list or () if name not in self.get_col_names()]
        if missing:
            raise errors.value_error(_OWNER, f"columns_list {missing} are not among {self.get_col_names()}")

    def add_sampler(self, new_sampler):
        """Not for this source: NotImplementedError."""
        raise errors.error(errors.NotSupportedError, f"{_OWNER}.add_sampler", "its order is given by shuffle")

    def use_sampler(self, new_sampler):
        """Not for this source: NotImplementedError."""
        raise errors.error(errors.NotSupportedError, f"{_OWNER}.use_sampler", "its order is given by shuffle")


def _copy(store, key: str, folder: Path) -> str:
    """A local copy of an object, with the index that belongs to it."""
    target = folder / Path(key).name
    try:
        store.get_file(key, str(target))
        if store.exists(f"{key}.db"):
            store.get_file(f"{key}.db", f"{target}.db")
    except OSError as e:
        raise errors.runtime_error(_OWNER, f"{key} cannot be copied: {e}") from None
    return str(target)


def sync_wait_for_dataset(rank_id: int, rank_size: int, current_epoch: int, obs_runtime=None) -> None:
    """Where MindSpore waits until all nodes have their files: here each process has its own at once."""
    del obs_runtime  # nobody is waited for
    for name, value in (("rank_id", rank_id), ("rank_size", rank_size), ("current_epoch", current_epoch)):
        nodes.of_type("sync_wait_for_dataset", name, value, int)
