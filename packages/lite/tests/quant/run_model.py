"""Runs models on arrays and keeps the answers: `run_model.py folder`. MYCELIA_ISA chooses the kernels."""

import sys
from pathlib import Path

import numpy as np

import mycelia_lite as mslite

for path in sorted(Path(sys.argv[1]).glob("*.ms")):
    x = np.load(path.with_suffix(".npy"))
    model = mslite.Model()
    model.build_from_file(str(path))
    model.get_inputs()[0].set_data_from_numpy(x)
    np.save(path.with_suffix(".out.npy"), model.predict(model.get_inputs())[0].get_data_to_numpy())
print("done")
