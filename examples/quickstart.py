"""Mycelia's first minute: LeNet-5 learns handwritten digits, is saved, exported, loaded again, checked
and made ready to be served.

usage: quickstart.py [--epochs N] [--output DIRECTORY]
"""

import argparse
import base64
import io
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "lenet"))

from digits import create_dataset, write_files
from lenet import LeNet5
from picture import save_grid, terminal_grid
from PIL import Image
from rich.console import Console

import mycelia as ms
from mycelia import nn
from mycelia.io.idx import read_idx
from mycelia.train import (
    CheckpointConfig,
    LossMonitor,
    ModelCheckpoint,
    ProgressBar,
    SummaryCollector,
    TimeMonitor,
)

BAR = 0.975  # accuracy on the held-out digits that a healthy installation reaches in EPOCHS
EPOCHS = 20
console = Console(highlight=False)


def step(number: int, text: str) -> None:
    console.print(f"\n[bold cyan]{number}.[/] [bold]{text}[/]")


def make_servable(net: nn.Cell, servables: Path, digit: np.ndarray) -> Path:
    """Writes the servable `lenet`, its model with an open batch, and a request with the image of a digit."""
    home = servables / "lenet"
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).parent / "serving_lenet" / "lenet" / "servable_config.py", home)
    images = ms.Tensor(shape=[None, 1, 32, 32], dtype=ms.float32)
    ms.export(net, images, file_name=str(home / "1" / "lenet.mindir"), file_format="MINDIR")
    file = io.BytesIO()
    Image.fromarray(digit).save(file, "PNG")
    image = {"b64": base64.b64encode(file.getvalue()).decode()}
    request = servables / "request.json"
    request.write_text(json.dumps({"instances": [{"image": image}]}))
    return request


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--output", type=Path, default=Path("quickstart_output"))
    options = parser.parse_args()
    out = options.output
    digits, checkpoints, runs = out / "digits", out / "checkpoints", out / "runs"
    ms.set_seed(1)

    step(1, "Real handwritten digits")
    train_count, test_count = write_files(digits)
    console.print(f"   {train_count} digits to learn from, {test_count} held out, as IDX files in {digits}/")

    step(2, f"Training LeNet-5 for {options.epochs} epochs")
    net = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    train_data = create_dataset(digits, "train", 32)
    steps = train_data.get_dataset_size()
    rates = nn.cosine_decay_lr(0.0, 0.015, options.epochs * steps, steps, options.epochs)
    optimizer = nn.Momentum(net.trainable_params(), rates, 0.9, weight_decay=1e-4)
    model = ms.Model(net, loss, optimizer, metrics={"accuracy": nn.Accuracy(), "loss": nn.Loss()})
    config = CheckpointConfig(save_checkpoint_steps=steps, keep_checkpoint_max=2)
    checkpoint = ModelCheckpoint("lenet", checkpoints, config)
    start = time.perf_counter()
    model.train(
        options.epochs,
        train_data,
        callbacks=[
            LossMonitor(steps),
            TimeMonitor(),
            checkpoint,
            SummaryCollector(str(runs / "lenet")),
            ProgressBar(),
        ],
    )
    seconds = time.perf_counter() - start
    console.print(
        f"   {options.epochs * steps} steps in {seconds:.1f} s; "
        f"checkpoint: {checkpoint.latest_ckpt_file_name}"
    )

    step(3, f"Evaluating on the {test_count} held-out digits")
    results = model.eval(create_dataset(digits, "test", 100, shuffle=False))
    console.print(f"   accuracy {results['accuracy']:.4f}, loss {results['loss']:.4f}")

    step(4, "Exporting to MindIR")
    net.set_train(False)
    mindir = out / "lenet.mindir"
    example = ms.Tensor(np.zeros((100, 1, 32, 32), np.float32))
    ms.export(net, example, file_name=str(mindir), file_format="MINDIR")
    console.print(f"   {mindir} ({mindir.stat().st_size / 1024:.0f} KB): MindSpore loads it, too")

    step(5, "Loading it in a fresh process and comparing predictions")
    batches = create_dataset(digits, "test", 100, shuffle=False)
    here = np.concatenate([net(x).asnumpy() for x, _ in batches.create_tuple_iterator(num_epochs=1)])
    there_file = out / "predictions.npy"
    script = Path(__file__).parent / "lenet" / "predict.py"
    subprocess.run([sys.executable, str(script), str(mindir), str(digits), str(there_file)], check=True)
    there = np.load(there_file)
    difference = float(np.abs(here - there).max())
    same = "bit for bit the same" if np.array_equal(here, there) else f"largest difference {difference:.1e}"
    console.print(f"   {len(there)} predictions, {same}")

    step(6, "What it sees")
    images = read_idx(digits / "t10k-images-idx3-ubyte")
    labels = read_idx(digits / "t10k-labels-idx1-ubyte")
    predicted = here.argmax(1)
    wrong = np.flatnonzero(predicted != labels)[:4]  # the interesting ones, among ordinary ones
    chosen = np.concatenate([np.arange(16 - len(wrong)), wrong])
    columns = max(1, min(8, (console.width + 2) // 14))
    console.print(
        terminal_grid(images[chosen], predicted[chosen], labels[chosen], columns),
        markup=False,
        soft_wrap=True,
    )
    picture = out / "digits.png"
    save_grid(picture, images[chosen], predicted[chosen], labels[chosen])
    console.print(f"   the same as a picture: {picture}")

    step(7, "A service made of it")
    servables = out / "servables"
    request = make_servable(net, servables, images[chosen[0]])
    command = f"mycelia-serving start --servable-dir {servables} --servable lenet --rest 127.0.0.1:1500"
    console.print("   pip install mycelia-serving, start it, and ask from another terminal:")
    console.print(f"   {command}", markup=False, soft_wrap=True)
    console.print(
        f"   curl http://127.0.0.1:1500/model/lenet:classify -d @{request}", markup=False, soft_wrap=True
    )

    step(8, "A file for devices")
    console.print("   pip install mycelia-lite, and make a model for programs in C++, C and Python:")
    console.print(
        f"   mycelia-lite convert --fmk=MINDIR --modelFile={mindir} --outputFile={out / 'lenet'}",
        markup=False,
        soft_wrap=True,
    )

    step(9, "What happened while it learned")
    console.print("   curves of the training, in a browser:")
    console.print(f"   mycelia-insight start --summary-base-dir {runs}", markup=False, soft_wrap=True)

    problems = []
    if results["accuracy"] < BAR and options.epochs >= EPOCHS:
        problems.append(f"accuracy {results['accuracy']:.4f} is below {BAR}")
    if difference > 1e-6:
        problems.append(f"predictions of the loaded file differ by {difference:.1e}")
    if problems:
        console.print(f"\n[bold red]Not as it should be:[/] {'; '.join(problems)}")
        return 1
    console.print("\n[bold green]All well.[/] What to try next:")
    console.print("   change the network in examples/lenet/lenet.py and run this again")
    console.print("   ms.set_context(mode=ms.GRAPH_MODE) at the top compiles the training step")
    console.print("   docs/index.md is the user guide, docs/adding-an-op.md shows how ops are made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
