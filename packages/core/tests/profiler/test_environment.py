"""Profiling of the environment, of which nothing is measured."""

import mycelia as ms
from mycelia.profiler import EnvProfiler, HostSystem


def test_profiling_of_the_environment_measures_nothing():
    assert EnvProfiler().init_profiler() is None and EnvProfiler().analyse() is None
    assert HostSystem("disk") is HostSystem.DISK and ms.runtime.Stream().stream_id() == 0
