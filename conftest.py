"""Options for all tests."""

import os


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
