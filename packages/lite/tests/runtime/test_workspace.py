"""Models that compute in the same memory."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn
from mycelia_lite.converter import convert

CONTROL = Path(__file__).parents[1] / "fixtures" / "control"
ROWS = (3, 200, 40)


@pytest.fixture(scope="module")
def files(write_mindir, tmp_path_factory):
    """Models on [open, 6], with memory of their own for what is between the products."""
    folder, made = tmp_path_factory.mktemp("group"), []
    for i, width in enumerate((8, 32, 64)):
        ms.set_seed(i)
        net = nn.SequentialCell(nn.Dense(6, width), nn.Tanh(), nn.Dense(width, width), nn.Dense(width, 4))
        source = write_mindir(net, folder / f"net{i}", (None, 6))
        made.append(convert(mslite.FmkType.MINDIR, source, str(folder / f"net{i}")).path)
    return made


def build(path, model=None):
    model = model or mslite.Model()
    model.build_from_file(path)
    return model


def answer(model, rows, seed):
    x = np.random.default_rng(seed).normal(size=(rows, 6)).astype(np.float32)
    if model.get_inputs()[0].shape[0] != rows:
        model.resize(model.get_inputs(), [[rows, 6]])
    model.get_inputs()[0].set_data_from_numpy(x)
    return model.predict(model.get_inputs())[0].get_data_to_numpy()


def grouped(files):
    group, models = mslite.ModelGroup(mslite.ModelGroupFlag.SHARE_WORKSPACE), [mslite.Model() for _ in files]
    group.add_model(models[:1])
    group.add_model(models[1:])
    return [build(path, model) for path, model in zip(files, models)]


def info(model, key):
    return int(model.get_model_info(key))


def test_the_memory_is_that_of_the_largest(files):
    together, alone = grouped(files), [build(path) for path in files]
    for models in (together, alone):
        for model, rows in zip(models, ROWS):
            answer(model, rows, 0)
    arenas = [info(model, "arena_bytes") for model in alone]
    assert [info(model, "arena_bytes") for model in together] == arenas and min(arenas) > 0
    each = [info(model, "workspace_bytes") for model in alone]
    assert {info(model, "workspace_bytes") for model in together} == {max(each)} and max(each) < sum(each)


def test_numbers_are_those_of_models_alone(files):
    """Whatever order they run in, and whoever lets the memory grow."""
    together, alone = grouped(files), [build(path) for path in files]
    random = np.random.default_rng(3)
    for seed in range(60):
        which, rows = int(random.integers(3)), int(random.choice((1, 5, 5, 5, 77, 300)))
        assert np.array_equal(answer(together[which], rows, seed), answer(alone[which], rows, seed))
    expected = [answer(model, 5, 9) for model in alone]
    del together[0]
    for model, wanted in zip(together, expected[1:]):
        assert np.array_equal(answer(model, 5, 9), wanted)
        model.update_weights([])
        assert np.array_equal(answer(model, 5, 9), wanted)


def test_threads_wait_for_one_another(files):
    together, alone = grouped(files), [build(path) for path in files]
    expected = [[answer(model, rows, rows) for rows in (2, 90)] for model in alone]
    fine = []

    def work(model, wanted):
        fine.extend(
            np.array_equal(answer(model, (2, 90)[k % 2], (2, 90)[k % 2]), wanted[k % 2]) for k in range(40)
        )

    threads = [threading.Thread(target=work, args=pair) for pair in zip(together, expected)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fine) == 120 and all(fine)


def test_a_run_inside_of_another_is_refused(files):
    first, second, _ = grouped(files)
    wanted = [answer(model, 4, 1) for model in (first, second)]
    said = []

    def inside(inputs, outputs, name, kind):
        for what in (
            lambda: second.predict(second.get_inputs()),
            lambda: second.resize(second.get_inputs(), [[7, 6]]),
            lambda: second.update_weights([]),
        ):
            with pytest.raises(RuntimeError, match="shares the workspace is running.*-102"):
                what()
            said.append(name)
        return True

    again = first.predict(first.get_inputs(), after=inside)[0].get_data_to_numpy()
    assert said and np.array_equal(again, wanted[0])
    assert np.array_equal(answer(second, 4, 1), wanted[1])


def test_loops_lie_behind_one_another(files, tmp_path):
    """Stages and subgraphs have arenas of their own, which are shared by level."""
    path = convert(mslite.FmkType.MINDIR, str(CONTROL / "while.mindir"), str(tmp_path / "while")).path
    alone, (dense, loop) = build(path), grouped([files[1], path])

    def run(model):
        for k, tensor in enumerate(model.get_inputs()):
            numbers = np.random.default_rng(k).normal(size=tensor.shape).astype(tensor.dtype.numpy)
            tensor.set_data_from_numpy(numbers)
        return [t.get_data_to_numpy() for t in model.predict(model.get_inputs())]

    wanted = run(alone)
    for rows in (1, 500):
        answer(dense, rows, 0)
        assert all(np.array_equal(found, one) for found, one in zip(run(loop), wanted))


def test_only_models_that_are_not_built_join(files):
    group = mslite.ModelGroup(mslite.ModelGroupFlag.SHARE_WORKSPACE)
    group.add_model([build(files[0])])  # the first one may be: the others come to it
    with pytest.raises(RuntimeError, match="the model is built already: a workspace is shared before"):
        group.add_model([build(files[1])])
    with pytest.raises(TypeError, match=r"models\[0\] must be a Model, but got str"):
        group.add_model([files[0]])
