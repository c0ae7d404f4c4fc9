"""`examples/micro_mcu`: models run on emulated boards, and take as little as docs say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import mycelia_lite as mslite
from mycelia_lite.micro import generate

EXAMPLE = Path(__file__).parents[4] / "examples" / "micro_mcu"
BOARDS = {
    "mps2-an385": "-mcpu=cortex-m3",
    "mps2-an386": "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16",
    "mps2-an500": "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-sp-d16",
}
MOST_CODE = 16 << 10  # bytes of LeNet's code on a Cortex-M4
ARM = ("arm-none-eabi-gcc", "qemu-system-arm", "make")
RISCV = ("riscv64-unknown-elf-gcc", "qemu-system-riscv32", "make")


@pytest.fixture(scope="module")
def project(lenet, tmp_path_factory):
    folder = tmp_path_factory.mktemp("micro")
    mslite.Converter().convert(mslite.FmkType.MINDIR, lenet[0], str(folder / "lenet"))
    (report,) = generate(folder / "lenet.ms", folder / "lenet_c", {"x": [1, 1, 32, 32]})
    return folder / "lenet_c", report


@pytest.mark.skipif(not all(map(shutil.which, ARM)), reason="needs gcc-arm-none-eabi, qemu-system-arm, make")
@pytest.mark.parametrize("board", BOARDS)
def test_the_board_gives_the_golden_answers(project, board):
    folder, report = project
    (folder / "program.elf").unlink(missing_ok=True)
    command = ["make", "-s", "run", f"PROJECT={folder}", f"BOARD={board}", f"CPU={BOARDS[board]}"]
    done = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    ticks = re.search(r"lenet: PASSED, ticks (\d+)", done.stdout + done.stderr)
    assert ticks and int(ticks[1]) > 1000
    text, data, bss = map(int, re.search(r"\n\s*(\d+)\s+(\d+)\s+(\d+)", done.stdout).groups())
    golden = 4 * (32 * 32 + 10)
    assert text - report.weight_bytes - golden < MOST_CODE
    assert data + bss < report.arena_bytes + 256


@pytest.mark.skipif(
    not all(map(shutil.which, RISCV)), reason="needs gcc-riscv64-unknown-elf, qemu-system-misc, make"
)
def test_risc_v_gives_the_golden_answers(project):
    folder, report = project
    command = ["make", "-s", "riscv", f"PROJECT={folder}"]
    done = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    count = re.search(r"lenet: PASSED, instructions (\d+)", done.stdout + done.stderr)
    products = 28 * 28 * 6 * 25 + 10 * 10 * 16 * 150  # of the convolutions
    assert count and int(count[1]) > products
