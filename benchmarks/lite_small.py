"""C code of models for microcontrollers: arena, code size and instructions on a Cortex-M4.

    python benchmarks/lite_small.py MODEL.tflite [MODEL.ms ...]

Open sizes are 1. Code and instructions need gcc-arm-none-eabi and qemu-system-arm; QEMU lets an instruction
take a nanosecond, so a tick of the board's 25 MHz clock is 40 of them. Models whose constants do not fit the
board's 4 MB have none. Code is that of the model and its kernels with -Os, without constants and without what
the C library adds; instructions are those of -Os and of -O2.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import mycelia_lite as mslite
from mycelia_lite.micro import Report, generate

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "micro_mcu"
INSTRUCTIONS = 40  # in a tick


def sources(path: Path, folder: Path) -> Report:
    """The C project of a model in `folder`."""
    model = path
    if path.suffix != ".ms":
        made = mslite.Converter().convert(
            mslite.FmkType[path.suffix[1:].upper()], str(path), str(folder / path.stem)
        )
        model = Path(made.path)
    built = mslite.Model()
    built.build_from_file(model)
    shapes = {t.name: [1 if n < 0 else n for n in t.shape] for t in built.get_inputs()}
    (report,) = generate(model, folder / "c", shapes)
    return report


def on_board(folder: Path) -> tuple[str, str, str]:
    """(bytes of code without constants, instructions with -Os and -O2); empty without an emulator."""
    if not all(map(shutil.which, ("arm-none-eabi-gcc", "qemu-system-arm", "make"))):
        return "", "", ""
    counts = []
    for level in ("-Os", "-O2"):
        (folder / "program.elf").unlink(missing_ok=True)
        command = ["make", "-s", "run", f"PROJECT={folder}", f"CFLAGS={level}"]
        done = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, timeout=600)
        answer = re.search(r"PASSED, ticks (\d+)", done.stdout + done.stderr)
        counts.append(f"{int(answer[1]) * INSTRUCTIONS:,}" if answer else "does not run there")
    objects = sum(
        int(
            re.search(
                r"\n\s*(\d+)",
                subprocess.run(["arm-none-eabi-size", o], capture_output=True, text=True).stdout,
            )[1]
        )
        for o in compiled(folder)
    )
    return f"{objects:,}", *counts


def compiled(folder: Path) -> list[str]:
    """Objects of the model's code for a Cortex-M4, without its constants."""
    flags = ["-std=c99", "-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-Os"]
    made = []
    for source in sorted(folder.glob("src/**/*.c")):
        if source.name.startswith("weight"):
            continue
        made.append(str(folder / f"{source.stem}.o"))
        includes = [f"-I{folder}/include", f"-I{folder}/src"]
        subprocess.run(
            ["arm-none-eabi-gcc", *flags, *includes, "-c", str(source), "-o", made[-1]], check=True
        )
    return made


def main() -> None:
    print("| model | arena | live in place | ratio | constants | code, M4 -Os | instructions, -Os | -O2 |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            report = sources(path, Path(folder))
            measured = on_board(Path(folder) / "c")
        ratio = report.arena_bytes / max(1, report.live_bytes)
        figures = f"{report.arena_bytes:,} | {report.live_bytes:,} | {ratio:.2f} | {report.weight_bytes:,}"
        print(f"| {path.stem} | {figures} | {' | '.join(measured)} |", flush=True)


if __name__ == "__main__":
    main()
