"""Options for all tests."""


def pytest_addoption(parser):
    parser.addoption("--regen", action="store_true", help="rewrite golden files; review their diff like code")
