"""Damaged `.ms` files: one reason, no crash. They are loaded and run in a process whose end shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
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


class Many(nn.Cell):
    """Operators of every family."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4)
        self.wide, self.row = nn.Conv2dTranspose(4, 2, 3, stride=2), nn.LayerNorm((6,))
        self.slopes, self.table = nn.PReLU(2), nn.Embedding(7, 6)

    def construct(self, x):
        y = self.slopes(self.wide(ops.abs(self.norm(self.conv(x)))))
        y = ops.pad(ops.clamp(y, -1.0, 1.0), (1, 1), mode="reflect")[:, :, ::2, 1:-1]
        low, high = ops.split(self.row(y), (2, 4), 3)
        z = ops.concat((ops.exp(high), ops.cumsum(low, 3)), 3)
        z = ops.where(z > 0.5, z, ops.pow(ops.abs(z) + 1, 1.5)) + ops.flip(z, (1,))
        index = ops.argmax(z, 3).astype(ms.int32)
        z = ops.stack((z, self.table(index)[..., :6].mean(3, keep_dims=True) * z), 1)
        values, places = ops.topk(z.sum(2), 2)
        picked = ops.gather(values, places[0, 0, 0] % 2, 3)
        one = ops.one_hot(index % 3, 3, ms.Tensor(1.0), ms.Tensor(0.0))
        return (
            ops.log_softmax(picked, 1),
            one.max(),
            ops.broadcast_to(z[:1, :1], z.shape),
            ops.tile(places, (1, 1, 1, 2)),
        )


@pytest.fixture(scope="module", params=["lenet", "many"])
def small(request, lenet, write_mindir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    source = lenet[0] if request.param == "lenet" else write_mindir(Many(), folder / "many", (2, 3, 6, 6))
    return Path(convert(mslite.FmkType.MINDIR, source, str(folder / request.param)).path)


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
