"""Every bench, one after the other: all.py [--peers] [--only PART] [options of a bench].

Without --peers only Mycelia's own figures are taken. Peers are found through the variables in peers.PYTHONS.
A bench that fails does not keep the others from running; the exit status tells of it.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import peers

BENCHES = (
    "kernels",
    "training",
    "inference",
    "scaling",
    "lite",
    "sizes",
    "half",
    "eager",
    "data",
    "parallel",
    "serving",
    "files",
    "footprint",
    "insight",
    "ascend_sim",
)


def main() -> None:
    arguments = sys.argv[1:]
    environment = dict(os.environ)
    if "--peers" not in arguments:
        for name in peers.PYTHONS.values():
            environment.pop(name, None)
    only = peers.option("--only")
    passed = [a for a in arguments if a not in ("--peers", "--only", only)]
    failed = []
    for name in BENCHES:
        if only in name:
            bench = Path(__file__).with_name(f"{name}.py")
            start = time.monotonic()
            done = subprocess.run([sys.executable, bench, *passed], env=environment, check=False)
            print(f"{name}: {(time.monotonic() - start) / 60:.1f} min", file=sys.stderr, flush=True)
            failed += [name] if done.returncode else []
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
