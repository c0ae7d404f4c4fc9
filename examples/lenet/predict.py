"""Loads a MindIR file and saves its predictions for the held-out digits:
run by the quickstart in a fresh process.

usage: predict.py lenet.mindir DIGITS_DIRECTORY OUTPUT.npy
"""

import sys

import numpy as np
from digits import create_dataset

import mycelia as ms
from mycelia import nn

model_file, directory, output = sys.argv[1:]
net = nn.GraphCell(ms.load(model_file))
batches = create_dataset(directory, "test", 100, shuffle=False)
np.save(
    output, np.concatenate([net(image).asnumpy() for image, _ in batches.create_tuple_iterator(num_epochs=1)])
)
