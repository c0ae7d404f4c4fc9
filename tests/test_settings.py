"""Nothing that is accepted does nothing in silence: a setting has a reader, or says what does not happen."""

from __future__ import annotations

import ast
import copy
from pathlib import Path

import pytest

import mycelia as ms
from mycelia import config
from mycelia.dataset import config as dataset_config
from mycelia.engine.base import parallel_settings

SOURCES = Path(__file__).resolve().parent.parent / "packages"
READS = {"get", "is_set", "on_change"}  # of a setting; also in `context.get_context`


def _read_in_python() -> set[str]:
    """Keys that some source, other than the table, asks the settings for."""
    found = set()
    for path in SOURCES.glob("*/src/**/*.py"):
        if path.name == "config.py" and path.parent.name == "mycelia":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args
            if called and node.func.attr in READS and isinstance(node.args[0], ast.Constant):
                found.add(node.args[0].value)
    return found


def _read_in_native_code() -> set[str]:
    """Settings whose variable native code asks the environment for."""
    texts = [path.read_text(encoding="utf-8") for path in SOURCES.glob("*/native/**/*.cc")]
    return {
        setting.key
        for setting in config.SETTINGS.values()
        if any(f'getenv("{name}")' in text for name in setting.env for text in texts)
    }


def test_each_setting_in_effect_has_a_reader():
    read = _read_in_python() | _read_in_native_code()
    without = {s.key for s in config.SETTINGS.values() if s.in_effect} - read
    assert not without, f"nothing reads {sorted(without)}: give them a reader, or say what is `missing`"
    useless = {s.key for s in config.SETTINGS.values() if not s.in_effect} & read
    assert not useless, f"{sorted(useless)} have a reader and are said to have no effect"


def _other(value, choices=()):
    """A value of the same kind that is not the default."""
    if choices:
        return next(c for c in choices if c != value)
    return {
        bool: lambda: not value, int: lambda: value + 1, float: lambda: value / 2, str: lambda: value + "x",
        dict: lambda: {**value, "key": "value"}, list: lambda: [*value, 1],
    }[type(value)]()  # fmt: skip


@pytest.mark.parametrize("key", [s.key for s in config.SETTINGS.values() if not s.in_effect])
def test_a_setting_without_effect_warns_once(key, warned):
    setting = config.SETTINGS[key]
    gigabytes = str(setting.default).endswith("GB")
    value = "3GB" if gigabytes else _other(setting.default, setting.choices)
    with config.context():
        config.set_context(**{key: setting.default})
        assert not warned
        try:
            config.set_context(**{key: value})
            config.set_context(**{key: value})
        finally:
            config.reset(key)
    (text,) = warned
    assert key in text and "has no effect" in text and setting.missing in text


_GROUPS = [parallel_settings._auto, parallel_settings._servers, parallel_settings._searches]
_TEXTS = {
    "parallel_mode": "data_parallel", "search_mode": "dynamic_programming",
    "auto_parallel_search_mode": "dynamic_programming", "dataset_strategy": "full_batch",
    "communi_parallel_mode": "no_group_parallel",
}  # fmt: skip


@pytest.mark.parametrize(
    ("group", "key"), [pytest.param(g, key, id=f"{g.owner}-{key}") for g in _GROUPS for key in g.missing]
)
def test_a_parallel_setting_warns_once(group, key, warned):
    value = _TEXTS.get(key) or _other(copy.deepcopy(group.table[key][0]))
    try:
        group.set({key: group.table[key][0]})
        assert not warned
        group.set({key: value})
        group.set({key: value})
    finally:
        group.reset()
    (text,) = warned
    assert key in text and group.missing[key] in text


def test_each_dataset_setting_has_a_reader_or_warns(warned, monkeypatch):
    monkeypatch.setattr(dataset_config, "_state", copy.deepcopy(dataset_config._state))
    texts = [path.read_text(encoding="utf-8") for path in SOURCES.glob("*/src/**/*.py")
             if path != Path(dataset_config.__file__)]  # fmt: skip
    for key, default in dataset_config._DEFAULTS.items():
        getters = {"seed": "config.given_seed("}
        if any(getters.get(key, f"config.get_{key}(") in text for text in texts):
            assert key not in dataset_config.MISSING
            continue
        warned.clear()
        setter = getattr(dataset_config, f"set_{key}")
        setter("Ascend" if key == "video_backend" else _other(default))
        (text,) = warned
        assert key in text and dataset_config.MISSING[key] in text


def test_training_among_processes_that_are_not_there_is_refused():
    net = ms.nn.Dense(2, 2)
    optimizer = ms.nn.SGD(net.trainable_params())
    model = ms.Model(net, ms.nn.MSELoss(), optimizer)
    data = ms.dataset.NumpySlicesDataset([[[0.0, 1.0]] * 2], ["data"])
    for given in (
        {"parallel_mode": "data_parallel", "device_num": 8},
        {"parallel_mode": "semi_auto_parallel", "device_num": 2},
        {"pipeline_stages": 2},
    ):
        ms.set_auto_parallel_context(**given)
        try:
            with pytest.raises(RuntimeError, match="this one trains alone"):
                ms.nn.SGD(net.trainable_params())
            with pytest.raises(RuntimeError, match="this one trains alone"):
                ms.mint.optim.AdamW(net.trainable_params())
            with pytest.raises(RuntimeError, match="this one trains alone"):
                ms.nn.TrainOneStepCell(net, optimizer)
            with pytest.raises(RuntimeError, match="this one trains alone"):
                model.train(1, data)
        finally:
            ms.reset_auto_parallel_context()
    ms.nn.SGD(net.trainable_params())
