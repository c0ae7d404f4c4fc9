"""Handwritten digits for the tutorials beside this file: MNIST's folder is DATA_PATH."""

import os

import mindspore as ms
import mindspore.dataset as ds
from mindspore.dataset import transforms, vision


def create_dataset(batch_size, **share):
    dataset = ds.MnistDataset(os.environ["DATA_PATH"], "train", **share)
    image_transforms = [
        vision.Rescale(1.0 / 255.0, 0),
        vision.Normalize(mean=(0.1307,), std=(0.3081,)),
        vision.HWC2CHW(),
    ]
    dataset = dataset.map(image_transforms, "image")
    dataset = dataset.map(transforms.TypeCast(ms.int32), "label")
    return dataset.batch(batch_size)
