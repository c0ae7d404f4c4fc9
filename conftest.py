"""Options for all tests."""

import gc
import os
import random
import sys
import zlib

import pytest


def pytest_addoption(parser):
    parser.addoption("--regen", action="store_true", help="rewrite golden files; review their diff like code")


# Generated examples are the same in every run: a failure seen once can be repeated.
# HYPOTHESIS_PROFILE=explore looks on.
try:
    from hypothesis import settings
except ImportError:  # a package's own suite may run without it
    pass
else:
    settings.register_profile("repeatable", derandomize=True, deadline=None)
    settings.register_profile("explore", deadline=None)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


FUZZ = int(os.environ.get("MYCELIA_FUZZ", 0))  # new cases a test, instead of the fixed ones
FUZZ_SEED = int(os.environ.get("MYCELIA_FUZZ_SEED", 1_000_000))  # the first of them


def pytest_generate_tests(metafunc):
    """A test marked `fuzz(count)` gets that many seeds: the same ones, unless tools/fuzz.py runs it."""
    mark = metafunc.definition.get_closest_marker("fuzz")
    if mark is not None and "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(FUZZ_SEED, FUZZ_SEED + FUZZ) if FUZZ else range(*mark.args))


class Told:
    """Failures in the moment they happen: a run of hours may be cut off before it sums up."""

    def __init__(self, reporter):
        self.reporter = reporter

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.reporter.write_line(f"\n{report.nodeid}\n{report.longreprtext}", flush=True)


def pytest_xdist_auto_num_workers(config):
    """A worker more for each four cores: tests wait for processes and pages a quarter of their time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + -(-cores // 4)


def pytest_sessionstart(session):
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if FUZZ and reporter is not None and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Told(reporter))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    gc.disable()


def pytest_collection_finish(session):
    """Tens of thousands of collected tests are no garbage: collections need not look at them."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Each test has random numbers of its own, the same in every run and in any order of tests."""
    seed = zlib.crc32(item.nodeid.encode())
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if "mycelia.common.initializer" in sys.modules:  # else its stream starts anew later
        sys.modules["mycelia.common.initializer"]._Stream.restart(seed)
    if "mycelia.engine.ops.random.generator" in sys.modules:
        sys.modules["mycelia.engine.ops.random.generator"]._streams.restart(seed)


@pytest.fixture(autouse=True, scope="module")
def process_is_left_as_found():
    """What a module does to the whole process would show in whichever tests happen to run after it."""
    gc.collect()
    gc.freeze()  # what modules before have left for good need not be looked at again
    main, arguments, folder = sys.modules["__main__"], sys.argv, os.getcwd()
    yield
    assert "mindspore" not in sys.modules, "compatibility mode stays on"
    assert sys.modules["__main__"] is main and sys.argv is arguments, "a script took the process over"
    assert os.getcwd() == folder, "the working directory has changed"


@pytest.fixture
def caplog(caplog):
    """pytest's, which core's messages reach: its loggers do not hand them on once they have been set up."""
    from mycelia import log

    ours = log.logger()
    before, ours.propagate = ours.propagate, True
    yield caplog
    ours.propagate = before
