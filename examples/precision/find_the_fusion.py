"""A training ends normally, and its accuracy is that of a coin: which fusion of the compiler is to blame?

`train.py` beside this file trains on the Ascend simulator with a fusion that was planted wrong. Commands of
`mycelia-precision` find and prove it, and the script does not change for them:

1. ``bisect`` trains without all fusions, then without halves of them, until the guilty one is known;
2. ``sim_dump --fused`` and ``ref_dump --fused`` dump what the compiled programs make, with the fusion and, by
   ``MYCELIA_PASS_OFF``, without it;
3. ``vc`` compares the two dumps and names the first operator that departs, with its line; ``vcs`` lists what
   follows from it.

usage: find_the_fusion.py [--output DIRECTORY]        some ten trainings of a second each
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TRAIN = f"{sys.executable} {Path(__file__).resolve().parent / 'train.py'}"
GUILTY, OPERATOR = "ub_matmul_bias_activation", "_backbone-Net/relu-ReLU/ReLU-op0"


def precision(folder, *words, **variables):
    """What a command of `mycelia-precision` prints; it is shown, too."""
    command = [sys.executable, "-m", "mycelia.debug.precision", *words]
    print("$ mycelia-precision", " ".join(f"'{w}'" if " " in w else w for w in words), flush=True)
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    if done.returncode:
        raise SystemExit(f"mycelia-precision {words[0]} ended with status {done.returncode}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="", help="where dumps are written; default: a temporary folder")
    folder = parser.parse_args().output or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    found = precision(folder, "bisect", "--cmd", TRAIN, "--metric", "result.json:accuracy", "--good", "0.9")
    guilty = next(line for line in found.splitlines() if line.startswith("guilty: ")).partition(": ")[2]
    precision(folder, "sim_dump", "--fused", TRAIN)
    precision(folder, "ref_dump", "--fused", TRAIN, MYCELIA_PASS_OFF=guilty)
    sides = "precision_data/npu/debug_0/dump", "precision_data/ref/dump"
    compared = precision(folder, "vc", "-lt", sides[0], "-rt", sides[1])
    precision(folder, "vcs", "-l", "2")
    proven = f"{OPERATOR}\n" in compared.partition("first divergence: ")[2]
    return 0 if guilty == GUILTY and proven else 1


if __name__ == "__main__":
    sys.exit(main())
