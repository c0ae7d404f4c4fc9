"""Runs damaged `.ms` files through Lite's runtime under the address and undefined sanitizers.

`python tools/fuzz.py --sanitized [--mutations 20000] [--first 0] [--jobs 2] [--isa "generic;avx2"]`.
Builds the runtime with kernels of these instruction sets, makes files of every operator
(`packages/lite/tests/fuzz/corpus.py`), and runs the mutations, AT_ONCE of them on one instruction set, then
as many on the next. It needs GCC. What a sanitizer reports, what ends the process, takes
longer than MOST_S or more memory than a file may ask for (`run_damaged.py`) is printed with the mutation's
number and does not end the run; the exit code is 1 if there was any.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from build_native import ROOT, run, tool

FUZZ = ROOT / "packages" / "lite" / "tests" / "fuzz"
AT_ONCE = 250  # mutations of a process
MOST_S = 60  # of one mutation, many times what the slowest takes
ROOM = 4 << 30  # bytes that a process may hold


def _build(isa: str) -> Path:
    """The folder that has the runtime and the library that counts allocations."""
    tree = ROOT / "packages" / "lite" / "build" / "sanitized"
    ninja, cmake = tool("ninja", tree, "CMAKE_MAKE_PROGRAM"), tool("cmake", tree, "CMAKE_COMMAND")
    options = {"CMAKE_BUILD_TYPE": "ASAN", "CMAKE_MAKE_PROGRAM": ninja, "MYCELIA_ISA": isa}
    run(
        [cmake, "-S", str(ROOT / "packages" / "lite" / "native"), "-B", str(tree), "-G", "Ninja",
         *(f"-D{k}={v}" for k, v in options.items())],
        "configuring the sanitized runtime",
    )  # fmt: skip
    jobs = os.environ.get("MYCELIA_JOBS", "2")
    run([cmake, "--build", str(tree), "-j", jobs, "--target", "mycelia_lite_train"], "compiling it")
    home = tree / "home" / "mycelia_lite" / "_runtime"
    home.mkdir(parents=True, exist_ok=True)
    library = home / "libmycelia_lite_train.so"  # what Python loads
    library.unlink(missing_ok=True)
    library.symlink_to(tree / library.name)
    counter = tree / "home" / "allocations.so"
    run(
        ["gcc", "-shared", "-fPIC", "-O1", "-Wall", str(FUZZ / "allocations.c"), "-o", str(counter)],
        "compiling what counts allocations",
    )
    return tree / "home"


def _environment(home: Path) -> dict[str, str]:
    sanitizer = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # What asks for more than there may be gets none, rather than minutes of marking it as taken.
    room = f"hard_rss_limit_mb={ROOM >> 20}:max_allocation_size_mb={ROOM >> 20}"
    common = f"halt_on_error=1:abort_on_error=0:{room}"
    return {
        **os.environ,
        "PYTHONPATH": str(home),
        "LD_PRELOAD": sanitizer,
        "ASAN_OPTIONS": f"{common}:allocator_may_return_null=1:detect_leaks=0",  # Python's own are no leaks
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "WATCH": str(home / "allocations.so"),
    }


class Shares:
    """What is left to do, and what was found."""

    def __init__(self, first: int, count: int) -> None:
        self.left: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        for begin in range(first, first + count, AT_ONCE):
            self.left.put((begin, min(AT_ONCE, first + count - begin)))
        self.lock = threading.Lock()
        self.told = self.ran = 0
        self.faults: list[int] = []

    def add(self, told: int, ran: int) -> None:
        with self.lock:
            self.told, self.ran = self.told + told, self.ran + ran

    def fault(self, number: int, isa: str, text: str) -> None:
        with self.lock:
            self.faults.append(number)
            print(f"mutation {number} ({isa}): {text}", flush=True)


def _work(shares: Shares, job: int, home: Path, files: list[str], sets: list[str]) -> None:
    progress = home / f"progress-{job}"
    while True:
        try:
            first, count = shares.left.get_nowait()
        except queue.Empty:
            return
        isa = sets[first // AT_ONCE % len(sets)]
        environment = {**_environment(home), "MYCELIA_ISA": isa, "PROGRESS": str(progress)}
        progress.write_text(f"{first} 0 0")
        command = [sys.executable, str(FUZZ / "run_damaged.py"), str(first), str(count), *files]
        with open(home / f"errors-{job}", "w+") as errors:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
            hung = not _watched(process, progress)
            errors.seek(0)
            text = "took longer than a minute" if hung else _report(errors.read())
        number, told, ran = map(int, progress.read_text().split())
        shares.add(told, ran)
        if process.returncode:
            shares.fault(number, isa, text)
            if number + 1 < first + count:
                shares.left.put((number + 1, first + count - number - 1))


def _report(text: str) -> str:
    """What a sanitizer or Python says, from where it says what is wrong."""
    found = re.search(r"[^\n]*(?:ERROR: AddressSanitizer|runtime error:)", text)
    return text[found.start() :][:3000] if found else text[-2000:]


def _watched(process: subprocess.Popen, progress: Path) -> bool:
    """Whether it came to its end without standing still at one mutation."""
    at, since = "", time.monotonic()
    while True:
        try:
            process.wait(1)
            return True
        except subprocess.TimeoutExpired:
            now = progress.read_text()
            if now and now != at:
                at, since = now, time.monotonic()
            if time.monotonic() - since > MOST_S:
                process.kill()
                process.wait()
                return False


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fuzz.py --sanitized", description=__doc__.partition("\n")[0])
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation (default: 0)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)"
    )
    parser.add_argument(
        "--isa", default="generic;avx2", help="kernels that are built (default: generic;avx2)"
    )
    options = parser.parse_args(arguments)
    home, corpus = _build(options.isa), ROOT / "packages" / "lite" / "build" / "corpus"
    subprocess.run([sys.executable, str(FUZZ / "corpus.py"), str(corpus)], check=True)
    files, sets = sorted(map(str, corpus.glob("*.ms"))), options.isa.split(";")
    shares, start = Shares(options.first, options.mutations), time.monotonic()
    workers = [
        threading.Thread(target=_work, args=(shares, job, home, files, sets)) for job in range(options.jobs)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(
        f"{options.mutations} mutations of {len(files)} files in {time.monotonic() - start:.0f} s: "
        f"{shares.told} refused, {shares.ran} ran, {len(shares.faults)} faults {sorted(shares.faults)}"
    )
    return int(bool(shares.faults))
