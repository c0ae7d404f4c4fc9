"""Writes networks of other people, out of the packages that they lie in, with an input and what it leads to.

lite_models.py DIRECTORY, run by a Python with pip, onnxruntime and ai-edge-litert.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

#: Name of a case -> (package, file in it, name and shape of its input).
MODELS = {
    "OCR detector 320": (
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "x",
        (1, 3, 320, 320),
    ),
    "speech embedding": (
        "pyopen-wakeword==1.1.0",
        "pyopen_wakeword/models/embedding_model.tflite",
        "serving_default_input_1:0",
        (1, 76, 32, 1),
    ),
    "pitch of notes": (
        "basic-pitch==0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        "serving_default_input_2:0",
        (1, 43844, 1),
    ),
}


def fetch(package: str, member: str, path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder,
             "--only-binary=:all:", "--implementation", "cp", "--python-version", "3.11",
             "--platform", "manylinux_2_35_x86_64", "--platform", "any", package],
            check=True, stdout=2,
        )  # fmt: skip
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as archive:
            path.write_bytes(archive.read(member))


def answer(path: Path, x: np.ndarray) -> np.ndarray:
    """The first output, of the engine that the format is native to."""
    if path.suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return session.run(None, {session.get_inputs()[0].name: x})[0]
    from ai_edge_litert.interpreter import Interpreter

    net = Interpreter(str(path))
    net.allocate_tensors()
    net.set_tensor(net.get_input_details()[0]["index"], x)
    net.invoke()
    return net.get_tensor(net.get_output_details()[0]["index"])


def main() -> None:
    folder = Path(sys.argv[1])
    for name, (package, member, _, shape) in MODELS.items():
        path = folder / f"{name}{Path(member).suffix}"
        if not path.exists():
            fetch(package, member, path)
        x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
        np.savez(folder / f"{name}.npz", x=x, y=answer(path, x))


if __name__ == "__main__":
    main()
