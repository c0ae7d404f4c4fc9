"""Each planted fault is named by its tool at the right operator or step, and clean trainings name nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import mycelia as ms

sys.path.insert(0, str(Path(__file__).parent))

from faulty_networks import in_networks
from planted_faults import clean, planted


@pytest.fixture(autouse=True)
def eager_again():
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


FAULTS = [*planted(), *clean(), *in_networks()]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.name}: {fault.tool}")
def test_the_fault_is_named_and_nothing_else(tmp_path, fault):
    assert fault.find(tmp_path) == fault.expected


def test_there_are_forty_kinds():
    pytest.importorskip("mycelia_backend_ascend_sim", reason="some are faults of the simulated device")
    assert len({fault.name for fault in planted()}) >= 40
