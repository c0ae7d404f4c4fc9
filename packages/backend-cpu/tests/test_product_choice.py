"""The choice between plain and Strassen's products with constant weights."""

from __future__ import annotations

import pytest

from mycelia_backend_cpu.product import choose_product


def chosen(rows, columns, depth, strict=False):
    return choose_product(rows, columns, depth, strict=strict)


@pytest.mark.parametrize(
    "size", [(128, 768, 768), (128, 3072, 768), (49, 512, 2048), (1024, 1024, 1024)], ids=str
)
def test_large_products_are_halved(size):
    assert chosen(*size) == "strassen"


@pytest.mark.parametrize("size", [(1, 4096, 4096), (16, 768, 768), (784, 512, 128), (3136, 64, 64)], ids=str)
def test_a_short_side_is_plain(size):
    assert chosen(*size) == "plain"


@pytest.mark.parametrize(
    "size", [(-1, 768, 768), (0, 768, 768), (128, 769, 768), (128, 768, 769), (128, 0, 0)], ids=str
)
def test_unknown_odd_and_empty_sizes_are_plain(size):
    assert chosen(*size) == "plain"


def test_strict_accuracy_is_plain():
    assert chosen(128, 768, 768, strict=True) == "plain"
