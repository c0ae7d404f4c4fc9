"""The pipelines of data.py in torch's DataLoader, images by Pillow."""

import numpy as np
import torch
from data_files import BATCH, MEAN, ROWS, STD, images
from data_pipelines import Rows
from peers import Items
from PIL import Image

MEAN, SCALE = np.array(MEAN, np.float32), 1 / np.array(STD, np.float32)


class Images(torch.utils.data.Dataset):
    def __init__(self, train: bool):
        self.files, self.train = images(), train

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        image = Image.open(self.files[i]).convert("RGB")
        pixels = self.training(image) if self.train else self.evaluation(image)
        pixels = ((pixels.astype(np.float32) - MEAN) * SCALE).transpose(2, 0, 1)
        return torch.from_numpy(np.ascontiguousarray(pixels)), i % 8

    @staticmethod
    def evaluation(image):
        width, height = image.size
        scale = 256 / min(width, height)
        image = image.resize((round(width * scale), round(height * scale)), Image.Resampling.BILINEAR)
        left, top = (image.size[0] - 224) // 2, (image.size[1] - 224) // 2
        return np.asarray(image.crop((left, top, left + 224, top + 224)))

    @staticmethod
    def training(image):
        rng = np.random.default_rng()
        width, height = image.size
        area, ratio = width * height * rng.uniform(0.08, 1), np.exp(rng.uniform(-0.288, 0.288))
        wide, high = min(width, int((area * ratio) ** 0.5)), min(height, int((area / ratio) ** 0.5))
        x, y = rng.integers(0, width - wide + 1), rng.integers(0, height - high + 1)
        box = (x, y, x + wide, y + high)
        pixels = np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR, box=box))
        return pixels[:, ::-1] if rng.random() < 0.5 else pixels


def cases(threads: int):
    torch.set_num_threads(threads)

    def read(source, batch: int, count: int, workers: int = 0) -> Items:
        loader = torch.utils.data.DataLoader(
            source, batch, num_workers=workers, persistent_workers=workers > 0
        )

        def epoch() -> int:
            for _ in loader:
                pass
            return count

        return Items(epoch)

    def make(case: str) -> Items | None:
        if case in ("JPEG evaluation b32", "JPEG training b32"):
            source = Images("training" in case)
            return read(source, 32, len(source))
        if case.startswith("GeneratorDataset"):
            return read(Rows(), BATCH, ROWS, 2 if "2 processes" in case else 0)
        return None

    return make
