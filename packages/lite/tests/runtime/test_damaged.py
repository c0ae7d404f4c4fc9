"""Damaged `.ms` files: one reason, no crash. They are loaded and run in a process whose end shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import convert

LOAD = """
import random, resource, sys
from pathlib import Path
import mycelia_lite as mslite

source, start, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
good = source.read_bytes()
resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
told = ran = 0
for number in range(start, start + count):
    rand, data = random.Random(number), bytearray(good)
    kind = rand.randrange(4)
    if kind == 0:
        del data[rand.randrange(len(data)):]
    elif kind == 1:
        for _ in range(rand.choice((1, 2, 8))):
            data[rand.randrange(len(data))] ^= 1 << rand.randrange(8)
    elif kind == 2:  # offsets and lengths
        place = rand.randrange(len(data) // 4) * 4
        value = rand.choice((0, 1, 2**31 - 1, 2**32 - 1, len(data), rand.getrandbits(32)))
        data[place:place + 4] = value.to_bytes(4, "little")
    else:  # of the tables, which stand in front
        place = rand.randrange(min(len(data), 6000))
        data[place] = rand.choice((0, 1, 127, 128, 255))
    path = source.with_name(f"damaged-{start}.ms")
    path.write_bytes(data)
    model = mslite.Model()
    try:
        model.build_from_file(path)
        inputs = model.get_inputs()
        if any(-1 in t.shape for t in inputs):
            model.resize(inputs, [[2 if n == -1 else n for n in t.shape] for t in inputs])
        model.predict(inputs)
        ran += 1
    except RuntimeError as error:
        assert str(error).strip(), number
        told += 1
print(told, ran)
"""


@pytest.fixture(scope="module")
def small(lenet, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    return Path(convert(mslite.FmkType.MINDIR, lenet[0], str(folder / "lenet")).path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as on Linux")
@pytest.mark.fuzz(4)
def test_damaged_files_are_told_or_run(small, seed):
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(small), str(seed * 100), "100"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"mutations from {seed * 100}: {done.stderr[-2000:]}"
    told, ran = map(int, done.stdout.split())
    assert told + ran == 100 and told > 10
