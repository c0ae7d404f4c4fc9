"""Runs the tests marked `fuzz` on new random cases, round after round, until the time is over.

`python tools/fuzz.py [--hours 1] [--cases 200] [--jobs 2] [pytest arguments]`. What fails is printed at
once, with the seed in its name or its message, and does not end the run; the exit code is 1 if anything
failed. Each round is a pytest run with MYCELIA_FUZZ=<cases> and MYCELIA_FUZZ_SEED=<first seed>, which can be
repeated by hand. `--sanitized` runs damaged `.ms` files under sanitizers instead: `fuzz_sanitized.py`.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    if sys.argv[1:2] == ["--sanitized"]:
        import fuzz_sanitized

        return fuzz_sanitized.main(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hours", type=float, default=1.0, help="how long to go on (default: 1)")
    parser.add_argument("--cases", type=int, default=200, help="new cases a test and round (default: 200)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)"
    )
    options, rest = parser.parse_known_args()
    end, failed, passed, rounds = time.monotonic() + 3600 * options.hours, 0, 0, 0
    command = [
        sys.executable,
        "-u",
        "-m",
        "pytest",
        "-m",
        "fuzz",
        "-p",
        "no:cacheprovider",
        "--tb=short",
    ]
    command += ["-n", str(options.jobs), "--dist", "worksteal", *rest]
    while rounds == 0 or time.monotonic() < end:
        rounds += 1
        seed = secrets.randbelow(2**31)
        environment = {**os.environ, "MYCELIA_FUZZ": str(options.cases), "MYCELIA_FUZZ_SEED": str(seed)}
        print(f"round {rounds} from seed {seed}", flush=True)
        last = ""
        with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE) as run:
            for line in run.stdout:
                print(line, end="", flush=True)
                last = line
        if run.returncode not in (0, 1):
            return run.returncode
        counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed)", last)}
        failed += counts.get("failed", 0)
        passed += counts.get("passed", 0)
        print(f"round {rounds} from seed {seed}: {passed} passed, {failed} failed so far", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
