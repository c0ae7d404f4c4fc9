"""Files that the benches of data read: JPEGs in directories of classes, and rows to write."""

import socket
import sys

import numpy as np
from peers import FILES

IMAGES, RECORDS, ROWS, BATCH = 256, 60_000, 20_000, 64
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]
JPEGS = FILES / "jpegs"
RECORD = np.random.default_rng(0).integers(0, 256, 784, dtype=np.uint8).tobytes()


def prepare() -> None:
    """Make the images: 500 x 375, smooth with some noise, as photographs are."""
    from PIL import Image

    if len(list(JPEGS.glob("*/*.jpg"))) == IMAGES:
        return
    rng = np.random.default_rng(0)
    for i in range(IMAGES):
        directory = JPEGS / f"class{i % 8}"
        directory.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        pixels = np.asarray(coarse.resize((500, 375), Image.Resampling.BICUBIC)).astype(np.int16)
        pixels = np.clip(pixels + rng.integers(-12, 13, pixels.shape), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(directory / f"{i:05d}.jpg", quality=90)


def images() -> list[str]:
    return sorted(map(str, JPEGS.glob("*/*.jpg")))


def free_port() -> int:
    """A port that nobody listens on, of those that MindSpore takes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def not_run(case: str, why) -> None:
    """Say that a case has no figure, and why."""
    print(f"{case}: not run: {why}", file=sys.stderr, flush=True)
