"""What a run was made of and made: checkpoints, exports, parents and data, by hash, crash-safe."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia import nn
from mycelia.train import (
    BackupAndRestore,
    CheckpointConfig,
    Model,
    ModelCheckpoint,
    SummaryCollector,
    SummaryRecord,
)
from mycelia.train.summary import artifacts
from mycelia.train.summary.data_fingerprint import fingerprint

X, Y = np.ones((16, 4), np.float32), np.zeros((16, 2), np.float32)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def made():
    net = nn.Dense(4, 2)
    return net, Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))


def data():
    return ds.NumpySlicesDataset((X, Y), ["data", "label"], shuffle=False).batch(4)


def lines(folder: str, kind: str, role: str | None = None) -> list[dict]:
    path = Path(folder, artifacts.FILE)
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [one for one in found if one["line"] == kind and role in (None, one.get("role"))]


def sha(path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def trained(folder: str, model, *callbacks, **options) -> None:
    model.train(1, data(), callbacks=[SummaryCollector(folder, **options), *callbacks])


def checkpoints(prefix: str, **options) -> ModelCheckpoint:
    return ModelCheckpoint(prefix, "ck", CheckpointConfig(save_checkpoint_steps=2, **options))


@pytest.mark.parametrize("is_async", [False, True])
def test_checkpoints_of_a_run_have_its_session_step_and_hash(is_async):
    _, model = made()
    trained("a", model, checkpoints("A", keep_checkpoint_max=1, async_save=is_async))
    (run,) = lines("a", "run")
    assert run["mode"] == "train" and run["network"] == "Dense" and run["versions"]["numpy"] == np.__version__
    found = lines("a", "artifact")
    assert [Path(one["path"]).name for one in found] == ["A-1_2.ckpt", "A-1_4.ckpt"]
    assert {one["session"] for one in found} == {run["session"]} and found[1]["parents"] == []
    assert len(found[0]["sha256"]) == 64
    assert is_async or not Path("ck/A-1_2.ckpt").exists()  # it is hashed all the same
    assert found[1]["sha256"] == sha("ck/A-1_4.ckpt") and found[1]["size"] == os.path.getsize("ck/A-1_4.ckpt")
    if not is_async:
        assert [one["step"] for one in found] == [2, 4]


def test_the_parent_is_the_checkpoint_that_was_loaded_into_the_network():
    net, model = made()
    trained("a", model, checkpoints("A"))
    other, other_model = made()
    ms.load_param_into_net(other, ms.load_checkpoint("ck/A-1_4.ckpt"))
    trained("b", other_model)
    (parent,) = lines("b", "input", "checkpoint")
    assert parent["sha256"] == sha("ck/A-1_4.ckpt") and parent["path"] == os.path.realpath("ck/A-1_4.ckpt")
    # A network of the same process that loaded nothing has no parent.
    trained("c", made()[1])
    assert lines("c", "run") and not lines("c", "input", "checkpoint")
    # One that is trained on without a file goes on from the run.
    trained("d", model)
    (before,) = lines("d", "input", "run")
    assert before["from_session"] == lines("a", "run")[0]["session"]
    # An evaluation has parents, too.
    ms.load_checkpoint("ck/A-1_2.ckpt", net)
    Model(net, nn.MSELoss(), metrics={"mse"}).eval(data(), callbacks=[SummaryCollector("e")])
    assert lines("e", "run")[0]["mode"] == "eval"
    assert lines("e", "input", "checkpoint")[0]["sha256"] == sha("ck/A-1_2.ckpt")


def test_a_parent_that_other_callbacks_load_counts():
    Path("backup").mkdir()
    net, model = made()
    ms.save_checkpoint(net, "backup/backup.ckpt", append_dict={"epoch_num": 0})
    digest = sha("backup/backup.ckpt")
    trained("a", model, BackupAndRestore("backup", delete_checkpoint=False))
    assert [one["sha256"] for one in lines("a", "input", "checkpoint")] == [digest]


def test_a_parent_that_has_changed_since_has_no_hash():
    net, model = made()
    ms.save_checkpoint(net, "p.ckpt")
    ms.load_checkpoint("p.ckpt", net)
    ms.save_checkpoint(net, "p.ckpt", append_dict={"more": 1.0})
    trained("a", model)
    (parent,) = lines("a", "input", "checkpoint")
    assert parent["sha256"] is None and parent["path"] == os.path.realpath("p.ckpt")


def test_exports_belong_to_the_run_that_trained_the_network():
    net, model = made()
    ms.export(net, ms.Tensor(X[:1]), file_name="before", file_format="MINDIR")
    trained("a", model, checkpoints("A"))
    ms.export(net, ms.Tensor(X[:1]), file_name="out/m", file_format="MINDIR")
    ms.export(net, ms.Tensor(X[:1]), file_name="out/m", file_format="ONNX")
    stranger, _ = made()
    ms.export(stranger, ms.Tensor(X[:1]), file_name="out/stranger", file_format="MINDIR")
    loaded, _ = made()
    ms.load_checkpoint("ck/A-1_2.ckpt", loaded)
    ms.export(loaded, ms.Tensor(X[:1]), file_name="out/loaded", file_format="MINDIR")
    with SummaryRecord("later"):  # waits for the thread that hashes
        ms.save_checkpoint(stranger, "later.ckpt")
    found = {Path(one["path"]).name: one for one in lines("a", "artifact", "export")}
    assert set(found) == {"m.mindir", "m.onnx", "loaded.mindir"}
    assert found["m.onnx"]["sha256"] == sha("out/m.onnx") and found["m.mindir"]["parents"] == []
    assert [one["sha256"] for one in found["loaded.mindir"]["parents"]] == [sha("ck/A-1_2.ckpt")]


def test_a_large_export_lists_both_of_its_files(monkeypatch):
    monkeypatch.setattr("mycelia.io.mindir._SPLIT_KIB", -1)
    net, model = made()
    with SummaryRecord("a"):
        ms.export(net, ms.Tensor(X[:1]), file_name="m", file_format="MINDIR")
    assert [Path(one["path"]).name for one in lines("a", "artifact")] == ["m_graph.mindir", "data_0"]


def test_a_record_of_ones_own_loop_lists_files_too():
    net, _ = made()
    with SummaryRecord("a"):
        ms.save_checkpoint(net, "x.safetensors", format="safetensors")
    ms.save_checkpoint(net, "after.ckpt")
    with SummaryRecord("without", artifacts=False):
        ms.save_checkpoint(made()[0], "y.ckpt")
    with SummaryRecord("nothing"):
        pass
    found = [(Path(one["path"]).name, one["sha256"]) for one in lines("a", "artifact")]
    assert found == [("x.safetensors", sha("x.safetensors")), ("after.ckpt", sha("after.ckpt"))]
    assert not Path("without", artifacts.FILE).exists() and not Path("nothing", artifacts.FILE).exists()
    with pytest.raises(TypeError, match="artifacts must be a bool, but got 1"):
        SummaryRecord("a", artifacts=1)


def test_it_is_left_out_when_the_collector_is_told_so():
    trained("a", made()[1], checkpoints("A"), collect_specified_data={"collect_artifacts": False})
    trained("b", made()[1], checkpoints("B"), keep_default_action=False)
    assert not lines("a", "run") and not lines("b", "run")


def test_a_line_that_was_cut_off_harms_no_other():
    Path("a").mkdir()
    Path("a", artifacts.FILE).write_bytes(b'{"line": "run", "sess')
    with SummaryRecord("a"):
        ms.save_checkpoint(made()[0], "x.ckpt")
    first, *rest = Path("a", artifacts.FILE).read_text().splitlines()
    assert first == '{"line": "run", "sess' and [json.loads(one)["line"] for one in rest] == [
        "run",
        "artifact",
    ]


@pytest.mark.parametrize("hostile", ["link", "fifo", "folder"])
def test_what_is_no_file_is_not_written_to_and_training_goes_on(hostile, caplog):
    Path("a").mkdir()
    place, elsewhere = Path("a", artifacts.FILE), Path("elsewhere")
    elsewhere.write_text("kept")
    if hostile == "link":
        place.symlink_to(elsewhere.absolute())
    elif hostile == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()
    trained("a", made()[1], checkpoints("A"))
    assert elsewhere.read_text() == "kept" and Path("ck/A-1_4.ckpt").exists()


def test_data_are_told_by_names_sizes_and_times():
    def folder(name: str, content: bytes = b"abc", when: int = 1000) -> dict:
        place = Path(name, "train", "cat")
        place.mkdir(parents=True, exist_ok=True)
        (place / "1.jpg").write_bytes(content)
        os.utime(place / "1.jpg", (when, when))
        described = ds.ImageFolderDataset(f"{name}/train", shuffle=False, num_parallel_workers=2)
        return fingerprint(described.batch(2).to_json())

    first = folder("one")
    assert (
        first["files"] == 1 and first["size"] == 3 and first["modified"] == 1000 and not first["is_partial"]
    )
    assert first["sources"] == [{"kind": "ImageFolderDataset", "paths": [os.path.abspath("one/train")]}]
    assert folder("two")["sha256"] == first["sha256"]  # the same data elsewhere
    assert folder("one", b"abcd")["sha256"] != first["sha256"]
    assert folder("one", b"xyz", 1001)["sha256"] != first["sha256"]
    described = ds.ImageFolderDataset("two/train", shuffle=True, num_samples=1).to_json()
    assert fingerprint(described)["sha256"] != first["sha256"]
    assert fingerprint(data().to_json())["sha256"] is None  # arrays of memory are not told apart


def test_many_files_are_counted_to_a_bound(monkeypatch):
    monkeypatch.setattr("mycelia.train.summary.data_fingerprint._MOST", 2)
    Path("d").mkdir()
    for name in "abc":
        Path("d", name).write_text(name)
    found = fingerprint({"op_type": "X", "dataset_dir": "d", "children": []})
    assert found["files"] == 2 and found["is_partial"]


def test_git_tells_the_commit_and_whether_files_differ(tmp_path):
    script = tmp_path / "tree" / "train.py"
    script.parent.mkdir()
    script.write_text("from mycelia.train.summary.artifacts import _surroundings; print(_surroundings())")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    facts = []
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], cwd=script.parent, check=True)
    for text in ("", "# changed\n"):
        script.write_text(script.read_text() + text)
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        facts.append(eval(done.stdout))
    head = subprocess.run([*git, "rev-parse", "HEAD"], cwd=script.parent, capture_output=True, text=True)
    assert [one["git_commit"] for one in facts] == [head.stdout.strip()] * 2
    assert [one["git_dirty"] for one in facts] == [False, True] and facts[0]["script"] == str(script)
