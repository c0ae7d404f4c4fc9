"""LeNet-5 learns handwritten digits from JPEG files, without and with the dataset cache.

Decoding and resizing are paid in the first epoch; later epochs take the rows from the cache server's memory.
The rows and their order are the same, so both trainings end with the same network. A server that runs already
is used; else one is started, and stopped at the end.

usage: cached_training.py [--epochs N] [--digits N] [--port P] [--output DIRECTORY]
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "lenet"))

from digits import write_files
from lenet import LeNet5
from PIL import Image

import mycelia as ms
from mycelia import dataset as ds
from mycelia import nn
from mycelia.dataset import transforms, vision
from mycelia.io.idx import read_idx
from mycelia.train import Callback

SIDE = 160  # pixels of a picture: about what a camera's thumbnail has


def write_pictures(folder: Path, count: int) -> None:
    """Write digits as JPEG files, one directory per class, with the edges that ink on paper has."""
    digits = folder.with_name("digits")
    write_files(digits)
    images = read_idx(digits / "train-images-idx3-ubyte")[:count]
    labels = read_idx(digits / "train-labels-idx1-ubyte")[:count]
    paper = np.random.default_rng(1).integers(200, 230, (SIDE, SIDE, 3))
    for number, (image, label) in enumerate(zip(images, labels)):
        directory = folder / str(label)
        directory.mkdir(parents=True, exist_ok=True)
        ink = np.asarray(Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BICUBIC)) / 255
        picture = paper * (1 - ink[..., None]) + 20 * ink[..., None]
        Image.fromarray(picture.astype(np.uint8)).save(directory / f"{number:05}.jpg", quality=90)


def create_dataset(folder: Path, cache=None):
    """Batches of images float32 [32, 3, 32, 32] and labels int32 [32]; a cache keeps what `map` makes."""
    data = ds.ImageFolderDataset(str(folder), shuffle=True)
    operations = [
        vision.Decode(),
        vision.Resize((32, 32)),
        vision.Rescale(-1 / 255.0, 1.0),
        vision.Normalize([0.25] * 3, [0.25] * 3),
        vision.HWC2CHW(),
    ]
    data = data.map(operations, input_columns="image", cache=cache)
    data = data.map(transforms.TypeCast(ms.int32), input_columns="label")
    return data.batch(32, drop_remainder=True)


def train(data, epochs: int) -> tuple[nn.Cell, list[float]]:
    """A trained LeNet-5, and the seconds that each epoch took."""
    ms.set_seed(1)
    ds.config.set_seed(1)
    net = LeNet5(num_channel=3)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    seconds = []

    class Clock(Callback):
        def on_train_epoch_begin(self, run_context):
            self.begun = time.perf_counter()

        def on_train_epoch_end(self, run_context):
            seconds.append(time.perf_counter() - self.begun)

    model.train(epochs, data, callbacks=[Clock()], dataset_sink_mode=False)
    return net, seconds


def reading_time(data) -> float:
    """Seconds to read an epoch without training."""
    start = time.perf_counter()
    for _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        pass
    return time.perf_counter() - start


def admin(*words) -> str:
    """What a command of the cache server prints."""
    command = [sys.executable, "-m", "mycelia_cache.admin", *map(str, words)]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def new_session(port: int) -> tuple[int, bool]:
    """A session of the server on a port, and whether the server had to be started for it."""
    try:
        return int(admin("--generate_session", "-p", port).split()[-1]), False
    except SystemExit:
        admin("--start", "-p", port)
        return int(admin("--generate_session", "-p", port).split()[-1]), True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--digits", type=int, default=4000)
    parser.add_argument("--port", type=int, default=50052)
    parser.add_argument("--output", type=Path, default=Path("quickstart_output"))
    options = parser.parse_args()
    folder = options.output / f"pictures-{options.digits}"
    if not folder.exists():
        write_pictures(folder, options.digits)

    session, is_ours = new_session(options.port)
    try:
        cache = ds.DatasetCache(session, port=options.port)
        plain, cached = create_dataset(folder), create_dataset(folder, cache)
        net, slow = train(plain, options.epochs)
        same_net, fast = train(cached, options.epochs)
        reads = reading_time(plain), reading_time(cached)
        stat = cache.get_stat()
    finally:
        if is_ours:
            admin("--stop", "-p", options.port)
        else:  # others use the server too
            admin("--destroy_session", session, "-p", options.port)

    print("epoch     without cache   with cache")
    for number, (a, b) in enumerate(zip(slow, fast), 1):
        print(f"{number:5}     {a:11.2f} s {b:10.2f} s")
    print(f"the cache holds {stat.num_mem_cached} rows, {stat.mem_bytes / 2**20:.1f} MB; hits {stat.num_hit}")
    later = sum(slow[1:]) / sum(fast[1:])
    print(f"training after the first epoch is {later:.1f} times as fast")
    print(f"reading without training is {reads[0] / reads[1]:.1f} times as fast")
    pairs = zip(net.get_parameters(), same_net.get_parameters())
    same = all(np.array_equal(a.asnumpy(), b.asnumpy()) for a, b in pairs)
    print(f"the two networks are {'the same to the last bit' if same else 'different'}")


if __name__ == "__main__":
    main()
