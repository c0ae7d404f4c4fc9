"""Caffe models built by hand: a text, and a file of weights."""

from __future__ import annotations

import numpy as np

import mycelia_lite as mslite
from mycelia_lite.converter.importers.caffe import caffe_pb2

from .tflite_models import run


def weights(blobs, old=False):
    """The bytes of a weight file; `blobs`: arrays by layer. In old files blobs have four sizes each."""
    net = caffe_pb2.NetWeights()
    for name, arrays in blobs.items():
        layer = (net.layers if old else net.layer).add(name=name)
        for array in arrays:
            array = np.asarray(array, np.float32)
            blob = layer.blobs.add(data=array.reshape(-1).tolist())
            if old:
                shape = (1,) * (4 - array.ndim) + array.shape
                blob.num, blob.channels, blob.height, blob.width = shape
            else:
                blob.shape.dim.extend(array.shape)
    return net.SerializeToString()


def write(tmp_path, text, blobs=None, old=False):
    """(path of the text, path of the weights)"""
    paths = tmp_path / "m.prototxt", tmp_path / "m.caffemodel"
    paths[0].write_text(text)
    paths[1].write_bytes(weights(blobs or {"none": []}, old))
    return tuple(map(str, paths))


def head(*shapes):
    """Input layers x0, x1 and so on."""
    dims = [" ".join(f"dim: {n}" for n in shape) for shape in shapes]
    return "".join(
        f'layer {{ name: "x{i}" type: "Input" top: "x{i}" input_param {{ shape {{ {d} }} }} }}\n'
        for i, d in enumerate(dims)
    )


def of_one(kind, shapes, parameters="", tops=1):
    """The text of one layer `it`."""
    bottoms = " ".join(f'bottom: "x{i}"' for i in range(len(shapes)))
    names = " ".join(f'top: "y{i}"' for i in range(tops))
    return head(*shapes) + f'layer {{ name: "it" type: "{kind}" {bottoms} {names} {parameters} }}\n'


def answers(tmp_path, text, blobs, *arrays, old=False):
    """What the model answers when it is converted and runs."""
    structure, weight_file = write(tmp_path, text, blobs, old)
    report = mslite.Converter().convert(
        mslite.FmkType.CAFFE, structure, str(tmp_path / "m"), weight_file=weight_file
    )
    return run(report.path, *arrays)
