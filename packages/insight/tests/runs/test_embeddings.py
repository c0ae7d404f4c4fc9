"""Embeddings: axes and neighbours as by definition, labels, TensorBoard's projector, hostile files."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "service")]
from event_files import field, number, scalar, write  # noqa: E402
from test_media import TENSORBOARD, recorded, told  # noqa: E402
from test_records import tensorflow  # noqa: E402

from mycelia_insight.records import projector  # noqa: E402
from mycelia_insight.records.wire import Broken  # noqa: E402
from mycelia_insight.runs import embeddings as module  # noqa: E402
from mycelia_insight.runs.discovery import find  # noqa: E402
from mycelia_insight.runs.embeddings import MOST_GRAPH, Embedding, Embeddings, sources  # noqa: E402
from mycelia_insight.runs.run import Run  # noqa: E402

CONFIG = """
# written by a person
embeddings {
  tensor_name: "words:00001"
  tensor_path: "words/tensors.tsv" metadata_path: 'words/metadata.tsv'
  sprite { image_path: "sprite.png" single_image_dim: 28 single_image_dim: 28 }
}
embeddings { tensor_name: "outside\\n" tensor_path: "../secret.tsv" }
model_checkpoint_path: "x"
"""


def tensor(values: np.ndarray) -> bytes:
    shape = b"".join(number(1, size) for size in values.shape)
    return shape + number(2, 11) + field(3, values.astype("<f4").tobytes())


def run_of(tmp_path: Path) -> Run:
    (found,) = find(str(tmp_path / "runs"))
    made = Run(str(tmp_path / "runs" / found.name), found.name, str(tmp_path / "workspace"))
    while made.refresh(found.files):
        pass
    return made


@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (60, 60), (1, 5), (2, 1), (300, 80)])
def test_axes_are_those_of_the_singular_values(shape):
    values = np.random.default_rng(1).normal(size=shape).astype(np.float32) * 3 + 5
    points, shares = Embedding(values).components()
    centred = values.astype(np.float64) - values.astype(np.float64).mean(0)
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    kept = points.shape[1]
    assert kept == min(*shape, 50)
    assert shares == pytest.approx((singular**2 / max((singular**2).sum(), 1e-300))[:kept], abs=1e-9)
    some = singular[:kept] > 1e-6
    assert np.abs(points[:, some]) == pytest.approx(
        np.abs(left * singular)[:, :kept][:, some], rel=1e-4, abs=1e-4
    )
    farthest = points[np.abs(points).argmax(0), np.arange(kept)]
    assert (farthest >= 0).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_neighbours_are_the_nearest(metric):
    values = np.random.default_rng(2).normal(size=(200, 9)).astype(np.float32)
    values[3] = 0  # has no direction
    values[5] = values[6]
    found = Embedding(values)
    for place in (0, 5, 199):
        wide = values.astype(np.float64)
        if metric == "euclidean":
            far = np.linalg.norm(wide - wide[place], axis=1)
        else:
            lengths = np.linalg.norm(wide, axis=1)
            far = 1 - wide @ wide[place] / np.maximum(lengths * lengths[place], 1e-300)
        far[place] = np.inf
        order = np.argsort(far, kind="stable")[:12]
        places, distances = found.neighbours(place, 12, metric)
        assert places.tolist() == order.tolist() and distances == pytest.approx(far[order], abs=1e-9)
    assert found.neighbours(5, 1, "euclidean")[0].tolist() == [6]
    assert len(found.neighbours(0, 1000, metric)[0]) == 199


@pytest.mark.parametrize("at_once", [1 << 22, 40_000])
def test_the_graph_has_the_neighbours_of_each(monkeypatch, at_once):
    monkeypatch.setattr(module, "_BLOCK", at_once)
    values = np.random.default_rng(3).normal(size=(500, 6)).astype(np.float32) + 1e3
    found = Embedding(values)
    places, distances = found.graph(7)
    assert places.shape == distances.shape == (500, 7)
    for place in (0, 250, 499):
        nearest, far = found.neighbours(place, 7, "euclidean")
        assert places[place].tolist() == nearest.tolist() and distances[place] == pytest.approx(far, rel=1e-4)
    assert Embedding(values[:3]).graph(15)[0].shape == (3, 2)
    assert Embedding(values[:1]).graph(15)[0].shape == (1, 0)
    with pytest.raises(ValueError, match=f"at most {MOST_GRAPH}"):
        Embedding(np.zeros((MOST_GRAPH + 1, 1))).graph(3)


def test_values_that_are_not_finite_are_left_out_and_large_ones_are_not():
    values = np.float32([[1, 2], [np.nan, 1], [3e38, -3e38], [np.inf, 0], [5, 6]])
    found = Embedding(values, ["name"], [[c] for c in "abcde"])
    assert found.rows.tolist() == [0, 2, 4] and found.count == 5 and found.labels == [["a"], ["c"], ["e"]]
    points, shares = found.components()
    assert np.isfinite(points).all() and shares.sum() == pytest.approx(1)
    nothing = Embedding(np.full((3, 2), np.nan))
    assert nothing.components()[0].shape[0] == 0 and nothing.graph(5)[0].shape == (0, 0)
    same = Embedding(np.ones((4, 3)))
    assert not same.components()[0].any() and not same.components()[1].any()


def test_tensors_of_rank_2_are_embeddings_with_labels(tmp_path):
    values = np.arange(12).reshape(4, 3)
    many = [recorded(8, "a", tensor(values + step), step) for step in (1, 2)]
    many += [
        recorded(8, "flat", tensor(np.arange(5)), 1),
        recorded(8, "deep", tensor(np.zeros((2, 2, 2))), 1),
    ]
    many += [recorded(8, "empty", tensor(np.zeros((0, 3))), 1)]
    write(tmp_path / "runs" / "r", many)
    board = [
        told("b", "", tensorflow(1, [4, 2], field(4, np.arange(8, dtype="<f4").tobytes())), 3),
        told("b/metadata", "text", tensorflow(7, [4, 2], *(field(8, f"c{i}") for i in range(8))), 3),
    ]
    (tmp_path / "runs" / "r" / "events.out.tfevents.1700000009.x").write_bytes(TENSORBOARD + b"".join(board))
    (tmp_path / "runs" / "r" / "metadata.tsv").write_text("name\tsize\nx\t1\ny\t2\nz\t3\nw\t4\n")
    run = run_of(tmp_path)
    assert [(s.id, s.steps, s.shape) for s in sources(run)] == [
        ("tensor:a", [1, 2], (4, 3)), ("tensor:b", [3], (4, 2)),
    ]  # fmt: skip
    known = Embeddings()
    first, last = known.get(run, "tensor:a", 1), known.get(run, "tensor:a", None)
    assert first.values.tolist() == (values + 1).tolist() and last.values.tolist() == (values + 2).tolist()
    assert first.columns == ["name", "size"] and first.labels[2] == ["z", "3"]
    told_ = known.get(run, "tensor:b", None)
    assert told_.columns == ["label 1", "label 2"] and told_.labels[3] == ["c6", "c7"] and not told_.trouble
    assert known.get(run, "tensor:none", None) is None and known.get(run, "other", None) is None
    with pytest.raises(Broken, match="rank 2"):
        known.get(run, "tensor:deep", None)
    (tmp_path / "runs" / "r" / "metadata.tsv").write_text("x\ny\n")
    assert "2 lines of labels for 4 vectors" in Embeddings().get(run, "tensor:a", 1).trouble


def projector_run(tmp_path: Path) -> Run:
    folder = tmp_path / "runs" / "p"
    (folder / "words").mkdir(parents=True)
    write(folder, [scalar("loss", 1, 1.0)])
    (folder / "projector_config.pbtxt").write_text(CONFIG)
    (folder / "words" / "tensors.tsv").write_text("1\t2\n3\t4.5\n-1e3\tnan\n")
    (folder / "words" / "metadata.tsv").write_text("one\ntwo\r\nthree\n")
    (tmp_path / "runs" / "secret.tsv").write_text("1\t1\n")
    return run_of(tmp_path)


def test_projector_folders(tmp_path):
    run = projector_run(tmp_path)
    assert [s.id for s in sources(run)] == ["projector:words:00001", "projector:outside\n"]
    found = Embeddings().get(run, "projector:words:00001", None)
    assert found.values.tolist() == [[1, 2], [3, 4.5]] and found.labels == [["one"], ["two"]]
    with pytest.raises(Broken, match="not in the folder of the run"):
        Embeddings().get(run, "projector:outside\n", None)
    words = tmp_path / "runs" / "p" / "words"
    (words / "tensors.tsv").unlink()
    os.symlink(tmp_path / "runs" / "secret.tsv", words / "tensors.tsv")
    with pytest.raises(Broken, match="not in the folder of the run"):
        Embeddings().get(run, "projector:words:00001", None)


@pytest.mark.parametrize(
    "text, why",
    [
        ("embeddings {", "not closed"), ("}", "not opened"), ("embeddings { tensor_name", "no value"),
        ("@", "understood"),       
        ("a " + "{ a " * 30, "deeper"), ("embeddings { tensor_name: }", "no value"),
        (": 3", "name of a field"),
    ],
)  # fmt: skip
def test_configurations_that_are_none_say_so(text, why):
    with pytest.raises(Broken, match=why):
        projector.configs(text)


def test_damaged_files_are_read_or_refused():
    rng = random.Random(3)
    vectors = "\n".join("\t".join(str(rng.random()) for _ in range(4)) for _ in range(9))
    read = refused = 0
    for _ in range(3000):
        text = list(rng.choice((CONFIG, vectors)))
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 3)] = rng.choice(
                ("", "{", "}", '"', "\t", "\n", "\0", "x", "1e999", "\\")
            )
        try:
            projector.configs("".join(text))
            projector.vectors("".join(text))
            read += 1
        except Broken:
            refused += 1
    assert refused > 1000 and read + refused == 3000
    assert projector.vectors("").size == 0
    with pytest.raises(Broken, match="2 numbers"):
        projector.vectors("1\t2\n3\n")
