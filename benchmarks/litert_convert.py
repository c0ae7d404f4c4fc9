"""Writes the networks of the inference bench as LiteRT files, channels last: litert_convert.py DIRECTORY."""

import sys
from pathlib import Path

import litert_torch
import models_torch
import torch
from models_data import EXPORTED, inference_input

for name in EXPORTED:
    net, x = models_torch.inference_network(name), torch.from_numpy(inference_input(name))
    if x.ndim == 4:
        net, x = litert_torch.to_channel_last_io(net, args=[0]), x.permute(0, 2, 3, 1).contiguous()
    litert_torch.convert(net, (x,)).export(str(Path(sys.argv[1]) / f"{name}.tflite"))
