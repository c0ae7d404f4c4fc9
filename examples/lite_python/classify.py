"""Classifies a picture with a .ms model: `classify.py MODEL.ms PICTURE.f32`; prints the class and its score.

The picture is float32 [1, channels, height, width], as the model takes it. NumPy is all that it needs beside
mycelia-lite.
"""

import sys

import numpy as np

import mycelia_lite as mslite


def classify(path: str, picture: str) -> tuple[int, float]:
    context = mslite.Context()
    context.cpu.thread_num = 2
    model = mslite.Model()
    model.build_from_file(path, mslite.ModelType.MINDIR_LITE, context)
    (x,) = model.get_inputs()
    if -1 in x.shape:  # an open batch
        model.resize([x], [[max(size, 1) for size in x.shape]])
    x.set_data_from_numpy(np.fromfile(picture, np.float32).reshape(x.shape))
    scores = model.predict([x])[0].get_data_to_numpy().ravel()
    return int(scores.argmax()), float(scores.max())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: classify.py MODEL.ms PICTURE.f32")
    print("{} {:.6f}".format(*classify(*sys.argv[1:])))
