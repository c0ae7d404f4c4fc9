"""Tuning the number of workers, and the profile of a pipeline."""

from __future__ import annotations

import json
import os
import threading

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia.dataset import transforms
from mycelia.dataset.execution import autotune


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """Every test has a seed and four cores, and leaves the settings as they were."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(ds.config, "_state", dict(ds.config._state))
    ds.config._state["seed"] = 5


def numbers(n=10, shuffle=False):
    return ds.NumpySlicesDataset(np.arange(n), ["x"], shuffle=shuffle)


def read(dataset, epochs=1):
    iterator = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    passes = [[row[0].tolist() for row in iterator] for _ in range(epochs)]
    return passes[0] if epochs == 1 else passes


# ---- tuning and profile ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "count, waited, load, expected",
    [
        (2, 0.5, 2.0, 3),
        (4, 0.5, 4.0, 4),
        (3, 0.0, 0.5, 2),
        (2, 0.05, 1.0, 2),
        (1, 0.0, 0.0, 1),
        (2, 0.5, 0.2, 2),
    ],
)
def test_how_many_workers_are_wanted(count, waited, load, expected):
    assert autotune.wanted(count, waited, load, most=4) == expected


def test_autotune_changes_workers_and_writes_what_it_found(tmp_path):
    prefix = str(tmp_path / "tuned")
    ds.config.set_enable_autotune(True, prefix)
    ds.config.set_autotune_interval(8)
    images = np.zeros((64, 32, 32, 3), np.uint8)
    source = ds.NumpySlicesDataset(images, ["image"], shuffle=False)
    mapped = source.map(lambda x: (threading.Event().wait(0.01), x)[1], num_parallel_workers=2).batch(2)
    iterator = mapped.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert len(list(iterator)) == 32
    assert max(iterator._run.workers.values()) > 2  # its reader did nothing but wait
    table = json.loads((tmp_path / "tuned_0.json").read_text())
    assert any("MapDataset (num_parallel_workers: " in line for line in table["summary"])
    ds.config.set_enable_autotune(False)


def test_a_tuned_pipeline_is_read_back(tmp_path):
    folder = tmp_path / "images" / "kind"
    folder.mkdir(parents=True)
    for i in range(8):
        (folder / f"{i}.png").write_bytes(bytes([i]))
    ds.config.set_enable_autotune(True, str(tmp_path / "tuned"))
    source = ds.ImageFolderDataset(str(tmp_path / "images"), shuffle=False)
    made = source.map(transforms.PadEnd([4], 0), ["image"], num_parallel_workers=3).batch(2)
    expected = read(made)
    ds.config.set_enable_autotune(False)
    again = ds.deserialize(json_filepath=str(tmp_path / "tuned_0.json"))
    assert read(again) == expected and again.children[0].num_parallel_workers in (2, 3)


def test_profile_names_the_bottleneck(capsys):
    def slow(x):
        threading.Event().wait(0.02)
        return x

    dataset = numbers(40).map(slow, num_parallel_workers=2).map(lambda x: x).batch(4)
    found = ds.profile(dataset)
    assert found.bottleneck == "Map [slow]"
    printed = capsys.readouterr().out
    assert "Map [slow]" in printed and "2 threads" in printed and "bottleneck: Map [slow]" in printed
    stages = {stage["name"]: stage for stage in found.stages}
    assert [stage["rows"] for stage in found.stages] == [10, 40, 40, 40]
    assert stages["Map [slow]"]["busy_seconds"] > 0.7
    assert stages["Map [slow]"]["fill"] is not None and stages["Batch 4"]["workers"] == ""
    assert dataset.profile(rows=2, show=False).stages[0]["rows"] == 2
    assert capsys.readouterr().out == ""


def test_profile_of_what_a_block_reads(capsys):
    with ds.profile() as found:
        for _ in numbers(10).batch(2).create_tuple_iterator(num_epochs=1):
            threading.Event().wait(0.1)
    assert found.bottleneck.startswith("what reads the rows")
    assert "the pipeline waits for it" in capsys.readouterr().out
    iterator = numbers(4).create_tuple_iterator(num_epochs=1, output_numpy=True)
    with ds.profile(show=False) as other:
        pass
    assert other.stages == [] and other.bottleneck == "nothing was read" and len(list(iterator)) == 4
    with pytest.raises(TypeError):
        ds.profile(3)
