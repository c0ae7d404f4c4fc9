"""Settings: one table, three ways to set them."""

from __future__ import annotations

import pytest

from mycelia import config
from mycelia.engine.base import settings


@pytest.fixture(autouse=True)
def fresh_settings():
    """Each test starts from the environment and leaves no setting behind."""
    before = dict(settings._values)
    config.reset()
    yield
    config.reset()
    for key, value in before.items():
        config.set_value(key, value)


def test_default_environment_and_set_context_override_one_another(monkeypatch):
    assert config.get_context("max_call_depth") == 1000
    monkeypatch.setenv("MYCELIA_MAX_CALL_DEPTH", "50")
    config.reset("max_call_depth")
    assert config.get_context("max_call_depth") == 50
    config.set_context(max_call_depth=7)
    assert config.get_context("max_call_depth") == 7


def test_first_environment_name_wins(monkeypatch):
    monkeypatch.setenv("GLOG_v", "3")
    config.reset()
    assert config.get("log_level") == "3"
    monkeypatch.setenv("MYCELIA_LOG_v", "1")
    config.reset()
    assert config.get("log_level") == "1"


@pytest.mark.parametrize(
    "text, value", [("1", True), ("true", True), ("0", False), ("off", False), ("", False)]
)
def test_flags_are_read_as_people_write_them(monkeypatch, text, value):
    monkeypatch.setenv("MYCELIA_CHECK", text)
    config.reset()
    assert config.get("check") is value


def test_save_graphs_variable_names_a_level_or_a_directory(monkeypatch):
    monkeypatch.setenv("MYCELIA_SAVE_GRAPHS", "1")
    config.reset()
    assert (config.get("save_graphs"), config.get("save_graphs_path")) == (1, ".")
    monkeypatch.setenv("MYCELIA_SAVE_GRAPHS", "/tmp/graphs")
    config.reset()
    assert (config.get("save_graphs"), config.get("save_graphs_path")) == (2, "/tmp/graphs")


def test_bad_environment_value_names_the_variable(monkeypatch):
    monkeypatch.setenv("MYCELIA_DEBUG", "loud")
    config.reset()
    with pytest.raises(ValueError, match="environment variable MYCELIA_DEBUG: 'loud' does not fit"):
        config.get("debug")
    monkeypatch.setenv("MYCELIA_DEBUG", "9")
    config.reset()
    with pytest.raises(ValueError, match=r"environment variable MYCELIA_DEBUG: '9' .* in range \[0, 4\]"):
        config.get("debug")


@pytest.mark.parametrize(
    "setting, error, text",
    [
        ({"mode": 3}, ValueError, r"should be GRAPH_MODE \(0\) or PYNATIVE_MODE \(1\), but got 3"),
        ({"mode": "a"}, TypeError, "'mode' must be int, but got str 'a'"),
        ({"mode": True}, TypeError, "'mode' must be int, but got bool True"),
        ({"device_id": -1}, ValueError, r"'device_id' must be in range \[0, 4095\], but got -1"),
        ({"device_target": "XPU"}, ValueError, "'device_target' must be one of"),
        ({"save_graphs": 4}, ValueError, "save_graphs should be 0-3 but got 4"),
        ({"max_call_depth": 0}, ValueError, "'max_call_depth' must be at least 1, but got 0"),
        ({"deterministic": "yes"}, ValueError, r"must be one of \['ON', 'OFF'\], but got 'yes'"),
        ({"pynative_synchronize": 3}, TypeError, "'pynative_synchronize' must be bool, but got int 3"),
        ({"jit_config": {"jit_level": "O7"}}, ValueError, "jit_level of 'jit_config' must be one of"),
        (
            {"max_device_memory": "much"},
            ValueError,
            "'max_device_memory' must be a positive number of gigabytes",
        ),
        (
            {"env_config_path": "/no/such/file"},
            ValueError,
            "'env_config_path' file '/no/such/file' does not exist",
        ),
        ({"seed": 1}, ValueError, "keyword argument 'seed' is not recognized"),
        ({"devce_target": "CPU"}, ValueError, "did you mean 'device_target'"),
    ],
)
def test_bad_settings_say_what_came_and_what_was_expected(setting, error, text):
    with pytest.raises(error, match=text):
        config.set_context(**setting)


def test_a_bad_key_leaves_the_good_ones_unchanged():
    with pytest.raises(ValueError):
        config.set_context(max_call_depth=5, nonsense=1)
    assert config.get_context("max_call_depth") == 1000


def test_keys_of_mindspore_are_accepted():
    config.set_context(
        mode=config.GRAPH_MODE,
        device_target="CPU",
        device_id=0,
        save_graphs=True,
        save_graphs_path="./ir",
        enable_graph_kernel=True,
        print_file_path="out.txt",
        jit_config={"jit_level": "O1"},
        memory_optimize_level="O1",
        max_device_memory="3.5GB",
        ascend_config={"precision_mode": "force_fp16"},
    )
    assert config.get_context("mode") == config.GRAPH_MODE
    assert config.get_context("save_graphs") == 1
    assert config.get_context("device_target") == "CPU"


def test_get_context_refuses_unknown_keys():
    with pytest.raises(ValueError, match="get_context: the keyword argument 'xyz' is not recognized"):
        config.get_context("xyz")


def test_context_block_restores_what_was_before():
    config.set_context(max_call_depth=5)
    with config.context(max_call_depth=6, fallback="error"):
        assert (config.get("max_call_depth"), config.get("fallback")) == (6, "error")
    assert (config.get("max_call_depth"), config.get("fallback")) == (5, "log")


def test_watchers_hear_of_every_change_and_may_refuse():
    heard = []

    def watcher(value):
        heard.append(value)
        if value == 13:
            raise ValueError("not 13")

    config.on_change("max_call_depth", watcher)
    try:
        config.set_context(max_call_depth=5)
        with config.context(max_call_depth=6):
            pass
        with pytest.raises(ValueError, match="not 13"):
            config.set_context(max_call_depth=13)
        assert heard == [1000, 5, 6, 5, 13, 5]
        assert config.get("max_call_depth") == 5
    finally:
        settings._watchers["max_call_depth"].remove(watcher)


def test_set_seed_seeds_numpy_and_is_remembered():
    import numpy as np

    config.set_seed(7)
    first = np.random.rand()
    config.set_seed(7)
    assert np.random.rand() == first
    assert config.get_seed() == 7


@pytest.mark.parametrize(
    "seed, error",
    [(-1, ValueError), (2**32, ValueError), ("a", TypeError), (1.0, TypeError), (True, TypeError)],
)
def test_bad_seeds_are_refused(seed, error):
    with pytest.raises(error, match="'seed' must be"):
        config.set_seed(seed)
    assert config.get_seed() is None


def test_every_setting_is_documented_and_its_default_passes_its_own_check():
    for setting in config.SETTINGS.values():
        assert setting.doc.endswith("."), setting.key
        assert settings.checked(setting, setting.default) == setting.default


def test_passes_to_leave_out_have_a_sign(monkeypatch):
    with config.context(passes=" -fuse, -layout,"):
        with pytest.raises(ValueError, match="'-' in front"):
            config.set_context(passes="-fuse,layout")
        assert config.get_context("passes") == " -fuse, -layout,"
    monkeypatch.setenv("MYCELIA_PASSES", "fuse")
    config.reset("passes")
    with pytest.raises(ValueError, match="environment variable MYCELIA_PASSES: 'fuse' does not fit"):
        config.get("passes")
    monkeypatch.delenv("MYCELIA_PASSES")
    config.reset("passes")
    assert config.get("passes") == ""
