"""Exports the quickstart's LeNet for serving. usage: export_model.py [QUICKSTART_OUTPUT]"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "lenet"))

from lenet import LeNet5

import mycelia as ms

HERE = Path(__file__).parent


def export_model(net, servable: Path, version: int = 1) -> Path:
    """Writes `net` as a version of the servable in the folder `servable`; the size of a batch stays open."""
    file = servable / str(version) / "lenet.mindir"
    images = ms.Tensor(shape=[None, 1, 32, 32], dtype=ms.float32)
    ms.export(net, images, file_name=str(file), file_format="MINDIR")
    return file


def main(output: str = "quickstart_output") -> None:
    checkpoints = sorted(Path(output, "checkpoints").glob("*.ckpt"), key=lambda f: f.stat().st_mtime)
    if not checkpoints:
        sys.exit(f"{output}/checkpoints has no checkpoint: run `make quickstart` first")
    net = LeNet5()
    ms.load_param_into_net(net, ms.load_checkpoint(str(checkpoints[-1])))
    net.set_train(False)
    print(f"wrote {export_model(net, HERE / 'lenet')} from {checkpoints[-1]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
