"""Damaged, foreign and empty files are refused by name with a reason; a failed write leaves the old file."""

from __future__ import annotations

import errno
import gzip
import os
import random
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn
from mycelia.io.idx import read_idx, write_idx

X = Tensor(np.ones((1, 4), np.float32))


def small_net(inputs: int = 4) -> nn.Cell:
    return nn.SequentialCell(nn.Dense(inputs, 8), nn.ReLU(), nn.Dense(8, 3))


def save_ckpt(path: str) -> None:
    ms.save_checkpoint(small_net(), path)


def save_crc(path: str) -> None:
    ms.save_checkpoint(small_net(), path, crc_check=True)


def save_safetensors(path: str) -> None:
    ms.save_checkpoint(small_net(), path, format="safetensors")


def export(path: str) -> None:
    ms.export(small_net(), X, file_name=path.removesuffix(".mindir"), file_format="MINDIR")


def load_and_run(path: str):
    return nn.GraphCell(ms.load(path))(X)


#: kind -> (suffix, how one is written, how it is read)
KINDS = {
    "ckpt": (".ckpt", save_ckpt, ms.load_checkpoint),
    "ckpt with crc": (".ckpt", save_crc, lambda path: ms.load_checkpoint(path, crc_check=True)),
    "safetensors": (
        ".safetensors",
        save_safetensors,
        lambda path: ms.load_checkpoint(path, format="safetensors"),
    ),
    "mindir": (".mindir", export, load_and_run),
    "idx": ("-ubyte", lambda path: write_idx(path, np.zeros((9, 4, 4), np.uint8)), read_idx),
}


@pytest.fixture(params=KINDS)
def kind(request, tmp_path):
    """(path of a good file, its bytes, the writer, the reader)."""
    suffix, write, read = KINDS[request.param]
    path = str(tmp_path / f"good{suffix}")
    write(path)
    with open(path, "rb") as file:
        content = file.read()
    read(path)
    return path, content, write, read


def damaged(path: str, content: bytes) -> str:
    other = os.path.join(os.path.dirname(path), "damaged" + os.path.basename(path).removeprefix("good"))
    with open(other, "wb") as file:
        file.write(content)
    return other


def refused(read, path: str) -> None:
    with pytest.raises(ValueError, match="damaged"):  # the file's name
        read(path)


def test_empty_file_is_refused(kind):
    path, _, _, read = kind
    refused(read, damaged(path, b""))


def test_foreign_content_is_refused(kind):
    path, _, _, read = kind
    for content in (
        b"hello, this is a text and nothing else\n" * 20,
        b"PK\3\4" + bytes(400),
        random.Random(0).randbytes(700),
    ):
        refused(read, damaged(path, content))


def test_truncation_anywhere_is_refused(kind):
    path, content, _, read = kind
    for length in [1, 2, 7, 8, 9, *range(10, len(content) - 1, max(1, len(content) // 40)), len(content) - 1]:
        # A checkpoint that ends between two values is a whole one of fewer values
        # (or without the CRC at its end).
        try:
            loaded = read(damaged(path, content[:length]))
        except ValueError as e:
            assert "damaged" in str(e)
        else:
            assert isinstance(loaded, dict) and len(loaded) <= 4, length


def test_changed_bytes_are_refused_or_read_but_never_break_the_reader(kind):
    path, content, _, read = kind
    rng = random.Random(1)
    for position in range(0, len(content), max(1, len(content) // 120)):
        changed = bytearray(content)
        changed[position] ^= rng.randrange(1, 256)
        try:
            read(damaged(path, bytes(changed)))
        except (ValueError, TypeError, MemoryError):  # TypeError: a graph that takes another number of inputs
            continue


def test_crc_finds_each_changed_byte(tmp_path):
    path = str(tmp_path / "good.ckpt")
    save_crc(path)
    with open(path, "rb") as file:
        content = file.read()
    for position in range(0, len(content) - 17, 13):
        changed = bytearray(content)
        changed[position] ^= 1
        refused(lambda p: ms.load_checkpoint(p, crc_check=True), damaged(path, bytes(changed)))


def test_damaged_gzip_is_refused(tmp_path):
    whole = gzip.compress(b"\0\0\x08\x01\0\0\0\x03abc")
    for content in (b"", b"no gzip", whole[:-9], whole[:12] + b"\xff\xff" + whole[14:]):
        (tmp_path / "images-ubyte.gz").write_bytes(content)
        with pytest.raises(ValueError, match="images-ubyte.gz"):
            read_idx(tmp_path / "images-ubyte.gz")


def test_missing_file_and_directory_are_named(tmp_path):
    with pytest.raises(ValueError, match="nothing.ckpt does not exist"):
        ms.load_checkpoint(str(tmp_path / "nothing.ckpt"))
    with pytest.raises(ValueError, match="nothing.mindir does not exist"):
        ms.load(str(tmp_path / "nothing.mindir"))
    with pytest.raises(OSError, match=r"/a\.ckpt'$"):
        ms.save_checkpoint(small_net(), str(tmp_path / "missing" / "a.ckpt"))


# ---- a checkpoint of another net ---------------------------------------------------------------------------


def test_wrong_checkpoint_lists_every_parameter_and_changes_none(tmp_path):
    save_ckpt(str(tmp_path / "a.ckpt"))
    values = ms.load_checkpoint(str(tmp_path / "a.ckpt"))
    values["extra"] = ms.Parameter(X, name="extra")
    net = nn.SequentialCell(nn.Dense(5, 8), nn.ReLU(), nn.Dense(8, 6), nn.Dense(6, 2))
    before = {p.name: p.asnumpy().copy() for p in net.get_parameters()}
    with pytest.raises(RuntimeError) as caught:
        ms.load_param_into_net(net, values)
    text = str(caught.value)
    assert "0.weight: the net has shape (8, 5), the checkpoint (8, 4)" in text
    assert "2.weight: the net has shape (6, 8), the checkpoint (3, 8)" in text
    assert "2.bias: the net has shape (6,), the checkpoint (3,)" in text
    assert "not in the checkpoint: 3.weight, 3.bias" in text
    assert "not in the net: extra" in text
    for p in net.get_parameters():
        np.testing.assert_array_equal(p.asnumpy(), before[p.name])


def test_missing_and_extra_parameters_are_returned(tmp_path):
    save_ckpt(str(tmp_path / "a.ckpt"))
    values = ms.load_checkpoint(str(tmp_path / "a.ckpt"))
    del values["2.bias"]
    values["extra"] = ms.Parameter(X, name="extra")
    assert ms.load_param_into_net(small_net(), values) == (["2.bias"], ["extra"])


# ---- full disk ---------------------------------------------------------------------------------------------


def unchanged(path: str, content: bytes) -> None:
    with open(path, "rb") as file:
        assert file.read() == content
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]  # no rest of the attempt


def test_full_disk_while_writing_keeps_the_old_file(kind, monkeypatch):
    path, content, write, _ = kind

    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as caught:
        write(path)
    assert caught.value.errno == errno.ENOSPC
    unchanged(path, content)


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the system has no limit of file sizes")
def test_real_size_limit_keeps_the_old_file(kind):
    import resource

    path, content, write, _ = kind
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError) as caught:
            write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert caught.value.errno == errno.EFBIG
    unchanged(path, content)
    if path.endswith((".ckpt", ".safetensors", ".mindir")):
        assert os.path.basename(path) in str(caught.value)


# ---- Ctrl-C ------------------------------------------------------------------------------------------------

LOOP = """
    import os, signal, sys, threading
    import numpy as np
    import mycelia as ms
    from mycelia import Tensor, nn
    from mycelia.engine import _C

    ms.set_context(mode=int(sys.argv[1]))
    net = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 3))
    optimizer = nn.Adam(net.trainable_params(), 0.001)
    step = ms.value_and_grad(lambda x: (net(x) * net(x)).mean(), None, optimizer.parameters)
    x = Tensor(np.ones((256, 64), np.float32))
    steps = 0
    try:
        while True:
            loss, gradients = step(x)
            optimizer(gradients)
            steps += 1
            if steps == 5:
                threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
    except KeyboardInterrupt:
        pass
    assert (_C.tape_level(), _C.mode()) == (0, 0)
    ms.save_checkpoint(net, sys.argv[2])
    loss, gradients = step(x)
    optimizer(gradients)
    assert np.isfinite(loss.item())
    print("saved after", steps >= 5)
"""


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_interrupted_training_can_save_and_go_on(mode, tmp_path):
    path = str(tmp_path / "stopped.ckpt")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LOOP), str(mode), path],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "saved after True\n", done.stderr
    assert set(ms.load_checkpoint(path)) == {"0.weight", "0.bias", "2.weight", "2.bias"}
