"""Numbers of any size as attributes of any op give a result or a clear error, eager and compiled the same."""

import subprocess
import sys
from pathlib import Path

import pytest

import mycelia as ms
from mycelia import Tensor, ops


@pytest.mark.fuzz(2)
@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of memory")
def test_no_value_of_an_attribute_crashes_or_is_compiled_to_something_else(seed, tmp_path):
    log = tmp_path / "log"
    script = Path(__file__).with_name("attribute_sweep.py")
    done = subprocess.run([sys.executable, script, log, str(seed)], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, log.read_text(), done.stderr[-2000:])
    assert done.stdout == ""
    assert log.exists()


def test_an_integer_of_more_than_64_bits_is_refused_by_name():
    x = Tensor([[1.0, 2.0]])
    for call in (lambda x: ops.cumsum(x, 2**70), lambda x: ops.tile(x, (1, -(2**64)))):
        for run in (call, ms.jit(call)):
            with pytest.raises(ValueError, match="(axis|dims)' must be .* of 64 bits, but got"):
                run(x)
