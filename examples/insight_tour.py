"""A gallery of runs for Mycelia Insight: trainings of LeNet-5 on handwritten digits with several
hyper-parameters, one that diverges, one in mixed precision, a loss landscape, graphs of compile stages,
embeddings, texts, sounds, a dump of steps that end in NaN, for the debugger.

usage: insight_tour.py [--epochs N] [--trainings N] [--output DIRECTORY]
"""

import argparse
import io
import shutil
import sys
import time
import wave
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "lenet"))

from digits import create_dataset, write_files
from lenet import LeNet5

import mycelia as ms
from mycelia import debug, nn
from mycelia.train import (
    CheckpointConfig,
    ModelCheckpoint,
    SummaryCollector,
    SummaryLandscape,
    SummaryRecord,
)

#: Optimizer, learning rate, batch size, seed; the first ones differ the most.
TRAININGS = [
    ("Momentum", 0.01, 32, 1), ("Adam", 0.001, 32, 1), ("SGD", 0.05, 64, 1), ("Adam", 0.01, 64, 1),
    ("Momentum", 0.03, 64, 2), ("Adam", 0.003, 128, 2), ("SGD", 0.2, 128, 2), ("Momentum", 0.003, 32, 2),
]  # fmt: skip


def loss_fn() -> nn.Cell:
    return nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


def optimizer_of(name: str, net: nn.Cell, rate: float) -> nn.Optimizer:
    if name == "Momentum":
        return nn.Momentum(net.trainable_params(), rate, 0.9)
    return getattr(nn, name)(net.trainable_params(), rate)


def train(
    digits: Path, run: Path, epochs: int, name: str, rate: float, batch: int, seed: int,
    files: Path | None = None, begin: Path | None = None, **more,
) -> nn.Cell:  # fmt: skip
    """One training, recorded in `run`, with checkpoints in `files`, from the checkpoint `begin`; `more`: for
    SummaryCollector. Gives the trained network.
    """
    ms.set_seed(seed)
    net = LeNet5()
    if begin is not None:
        ms.load_checkpoint(str(begin), net)
    metrics = {"accuracy": nn.Accuracy(), "loss": nn.Loss()}
    model = ms.Model(net, loss_fn(), optimizer_of(name, net, rate), metrics=metrics)
    collector = SummaryCollector(str(run), custom_lineage_data={"seed": seed}, **more)
    callbacks = [collector]
    if files is not None:
        callbacks.append(ModelCheckpoint(run.name, str(files), CheckpointConfig(save_checkpoint_steps=40)))
    model.train(epochs, create_dataset(digits, "train", batch), callbacks=callbacks)
    model.eval(create_dataset(digits, "test", 100, shuffle=False), callbacks=[collector])
    return net


def draw_landscape(digits: Path, run: Path, epochs: int, size: int) -> None:
    """The path of a training with its loss landscape, and around its result."""
    steps = epochs * 62
    interval = sorted({*np.linspace(1, steps, 12).astype(int).tolist()})
    options = {"landscape_size": size, "num_samples": 256, "intervals": [interval]}
    train(digits, run, epochs, "Momentum", 0.01, 64, 3, collect_specified_data={"collect_landscape": options})

    def parts():
        net = LeNet5()
        data = create_dataset(digits, "test", 128, shuffle=False)
        return ms.Model(net, loss_fn()), net, data, {"Loss": nn.Loss()}

    landscape = SummaryLandscape(str(run))
    landscape.gen_landscapes_with_multi_process(parts)
    landscape.clean_ckpt()


def go_on(digits: Path, run: Path, files: Path) -> None:
    """A training from the checkpoint that was written last, and a model for inference of what it gives."""
    newest = max(files.glob("*.ckpt"), key=lambda path: path.stat().st_mtime_ns)
    net = train(digits, run, 1, "Momentum", 0.001, 64, 6, files, newest)
    ms.export(
        net,
        ms.Tensor(shape=[None, 1, 32, 32], dtype=ms.float32),
        file_name=str(files / "lenet5"),
        file_format="MINDIR",
    )


def keep_stages(digits: Path, run: Path) -> None:
    """A training step as the compiler sees it, stage by stage, beside what it computes."""
    with ms.config.context(save_graphs=2, save_graphs_path=str(run / "stages")):
        train(digits, run, 1, "Adam", 0.001, 128, 4)


def train_in_mixed_precision(digits: Path, run: Path) -> None:
    """A training of which most operators compute in float16, its loss in float32."""
    ms.set_seed(7)
    net = LeNet5()
    optimizer = optimizer_of("Momentum", net, 0.01)
    scaled = {"amp_level": "O2", "loss_scale_manager": ms.FixedLossScaleManager(1024.0, False)}
    model = ms.Model(net, loss_fn(), optimizer, metrics={"accuracy": nn.Accuracy()}, **scaled)
    collector = SummaryCollector(str(run), collect_freq=5, custom_lineage_data={"amp_level": "O2"})
    model.train(1, create_dataset(digits, "train", 64), callbacks=[collector])


def dump_steps(digits: Path, run: Path) -> None:
    """Every operator's tensors of six steps with a learning rate that is far too high."""
    ms.set_seed(5)
    net = LeNet5()
    model = ms.Model(net, loss_fn(), optimizer_of("SGD", net, 1e12))
    with debug.dump({"path": str((run / "dump").absolute()), "net_name": "LeNet5"}):
        model.train(1, create_dataset(digits, "train", 16).take(6), dataset_sink_mode=False)


def record_media(digits: Path, run: Path, net: nn.Cell) -> None:
    """Embeddings with labels, tensors, images, texts with tables, sounds."""
    from mycelia_insight.exchange.to_tensorboard import TensorBoardWriter
    from mycelia_insight.runs.run import Moment

    (images, labels), *_ = create_dataset(digits, "test", 500, shuffle=False).create_tuple_iterator(
        num_epochs=1
    )
    net.set_train(False)
    hidden = nn.SequentialCell(
        net.conv1,
        net.relu,
        net.max_pool2d,
        net.conv2,
        net.relu,
        net.max_pool2d,
        net.flatten,
        net.fc1,
        net.relu,
        net.fc2,
    )
    logits = net(images)
    predicted = logits.asnumpy().argmax(1)
    scores = nn.Softmax()(logits).asnumpy().max(1)
    with SummaryRecord(str(run)) as record:
        for step in range(5):
            record.add_value("tensor", "features", hidden(images))
            record.add_value("tensor", "conv1.weight", net.conv1.weight)
            record.add_value("image", "digits", images[step * 16 : step * 16 + 16])
            record.add_value("histogram", "logits", logits)
            some = slice(step * 8, step * 8 + 8)
            page, over = page_of(
                images.asnumpy()[some], labels.asnumpy()[some], predicted[some], scores[some]
            )
            record.add_value("image", "page", page, **over)
            record.record(step)
    pairs = zip(labels.asnumpy().tolist(), predicted.tolist(), strict=True)
    rows = [f"{digit}\t{'right' if digit == guess else f'taken for {guess}'}" for digit, guess in pairs]
    (run / "metadata.tsv").write_text("\n".join(["digit\tresult", *rows, ""]))
    writer = TensorBoardWriter(str(run), time.time())
    for step in range(3):
        at = Moment(step, time.time())
        counts = np.bincount(labels.asnumpy(), minlength=10)
        table = "\n".join(f"| {digit} | {count} |" for digit, count in enumerate(counts))
        head = f"# Held-out digits\n\nStep **{step}** of the tour.\n\n| digit | count |\n| --- | --- |\n"
        writer.text("notes/digits", at, [[head + table]])
        writer.sound("chirp", at, 0, chirp(220 * 2**step))
    writer.close()


def page_of(
    digits: np.ndarray, labels: np.ndarray, predicted: np.ndarray, scores: np.ndarray
) -> tuple[ms.Tensor, dict]:
    """Eight digits on a page, with boxes of what they are and are taken for, and their ink as a mask."""
    size, places = (
        digits.shape[-1],
        [(60 * (i % 4) + 7 * (i % 3), 52 * (i // 4) + 9 * (i % 2)) for i in range(8)],
    )
    page, ink = np.zeros((112, 232), np.float32), np.zeros((112, 232), np.int32)
    boxes = []
    for digit, label, (x, y) in zip(digits, labels, places, strict=True):
        part = (digit[0] - digit.min()) / (np.ptp(digit) or 1)
        page[y : y + size, x : x + size] = part
        ink[y : y + size, x : x + size] = np.where(part > 0.4, label + 1, 0)
        boxes.append([x, y, x + size, y + size])
    names = {digit + 1: str(digit) for digit in range(10)}
    told = {"boxes": boxes, "labels": predicted.tolist(), "scores": scores}
    over = {"boxes": {"network": told}, "masks": {"ink": {"mask": ink, "labels": names}}}
    return ms.Tensor(page[None, None]), over


def chirp(hertz: float, seconds: float = 0.6, rate: int = 16_000) -> bytes:
    """A rising tone as a WAV file."""
    times = np.arange(int(seconds * rate)) / rate
    samples = 0.4 * np.sin(2 * np.pi * hertz * (1 + times) * times) * np.hanning(len(times))
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--trainings", type=int, default=len(TRAININGS), help=f"1 to {len(TRAININGS)}")
    parser.add_argument("--landscape-size", type=int, default=25)
    parser.add_argument("--output", type=Path, default=Path("insight_tour"))
    options = parser.parse_args()
    runs, digits = options.output / "runs", options.output / "digits"
    files = options.output / "files"
    for folder in (runs, files):
        shutil.rmtree(folder, ignore_errors=True)
    begin = time.perf_counter()
    write_files(digits)
    ms.set_context(mode=ms.GRAPH_MODE)  # so that there are graphs to show

    def told(run: str) -> Path:
        print(f"{time.perf_counter() - begin:6.1f} s  {run}", flush=True)
        return runs / run

    for name, rate, batch, seed in TRAININGS[: options.trainings]:
        run = told(f"lenet/{name.lower()}-{rate:g}-{batch}")
        net = train(digits, run, options.epochs, name, rate, batch, seed, files, collect_freq=5)
    go_on(digits, told("lenet/tuned"), files)
    asked = {"collect_nonfinite_nodes": True}
    train(digits, told("lenet/diverges"), 1, "SGD", 1e4, 64, 5, collect_freq=5, collect_specified_data=asked)
    draw_landscape(digits, told("landscape"), options.epochs, options.landscape_size)
    train_in_mixed_precision(digits, told("mixed precision"))
    keep_stages(digits, told("compile stages"))
    record_media(digits, told("media"), net)
    dump_steps(digits, told("debugged"))
    print(f"{time.perf_counter() - begin:6.1f} s  done. See it:\n")
    print(f"    mycelia-insight start --summary-base-dir {runs}\n")


if __name__ == "__main__":
    main()
