"""Hook implementations of Mycelia Cache; imported the first time core calls a hook,
so nothing heavy at the top.
"""

from mycelia.hookspecs import hookimpl

HOOK_API = 1


@hookimpl
def mycelia_dataset_cache(config):
    """The client of a `DatasetCache`."""
    from mycelia_cache.client import CacheClient

    return CacheClient(config)
