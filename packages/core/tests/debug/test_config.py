"""A configuration that is none is refused with the field and what it may be; unknown fields are told."""

from __future__ import annotations

import pytest

from mycelia.debug.dump.config import Kernels, parse, read


def made(e2e=None, **common):
    sections = {"common_dump_settings": {"path": "/tmp/d", **common}}
    return parse({**sections, "e2e_dump_settings": {"enable": True} if e2e is None else e2e})


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("dump_mode", 3, "one of 0, 1, 2"),
        ("dump_mode", True, "one of 0, 1, 2"),
        ("path", "relative/path", "an absolute path"),
        ("path", 5, "an absolute path"),
        ("net_name", "a/b", "a name of letters, digits"),
        ("net_name", "..", "a name of letters, digits"),
        ("iteration", "1-", "'0|5-8|100-120'"),
        ("iteration", "8-5", "'0|5-8|100-120'"),
        ("iteration", -1, "'all'"),
        ("iteration", None, "'all'"),
        ("saved_data", "all", "'tensor', 'statistic', 'full'"),
        ("input_output", 4, "one of 0, 1, 2"),
        ("kernels", "Conv2D", "a list of strings"),
        ("kernels", ["name-regex(()"], "regular expressions"),
        ("support_device", [-1], "a list of integers"),
        ("statistic_category", ["median"], "'l2norm'"),
        ("op_debug_mode", 1, "one of 0, 3, 4"),
        ("overflow_number", -1, "an integer from 0 on"),
        ("initial_iteration", "0", "an integer from 0 on"),
        ("layout", "csv", "'npy', 'bin'"),
        ("signal", "SIGNOTHING", "the name of a signal"),
        ("eager", 1, "true or false"),
        ("conditions", {}, "a list of objects"),
        ("naming", "2.1", "'2.10', '2.0'"),
        ("kernels", ["name-regex(x"], "name-regex(EXPR)"),
    ],
)
def test_a_bad_value_is_named_with_what_is_expected(field, value, expected):
    with pytest.raises(ValueError, match=f"'{field}'") as error:
        made(**{field: value})
    assert expected in str(error.value)
    shown = value[0] if field == "kernels" and isinstance(value, list) else value
    assert repr(shown) in str(error.value)


@pytest.mark.parametrize(
    ("common", "told"),
    [
        ({"dump_mode": 1}, "since dump_mode is 1"),
        ({"op_debug_mode": 3, "input_output": 1}, "since op_debug_mode is 3"),
        ({"op_debug_mode": 4, "input_output": 2}, "since op_debug_mode is 4"),
    ],
)
def test_fields_must_fit_together(common, told):
    with pytest.raises(ValueError, match=told):
        made(**common)


@pytest.mark.parametrize(
    "content", [[], "x", {"e2e_dump_settings": {"enable": True}}, {"common_dump_settings": 1}]
)
def test_the_sections_must_be_objects(content):
    with pytest.raises(ValueError, match="common_dump_settings"):
        parse(content)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("sample_mode", 2, "one of 0, 1"),
        ("sample_num", 0, "an integer from 1 on"),
        ("stat_calc_mode", "gpu", "'host', 'device'"),
        ("device_stat_precision_mode", "double", "'high', 'low'"),
        ("trans_flag", 1, "true or false"),
    ],
)
def test_values_of_the_synchronous_section_are_checked(field, value, expected):
    with pytest.raises(ValueError, match=f"'e2e_dump_settings.{field}'") as error:
        made(e2e={"enable": True, field: value})
    assert expected in str(error.value)


def test_the_format_of_asynchronous_files_is_checked():
    content = {"common_dump_settings": {"path": "/tmp/d"}, "async_dump_settings": {"enable": True}}
    assert parse(content).file_format == "bin"
    content["async_dump_settings"]["file_format"] = "csv"
    with pytest.raises(ValueError, match=r"'async_dump_settings.file_format' must be one of 'npy', 'bin'"):
        parse(content)


def test_what_does_not_go_together_is_told_of(caplog):
    with caplog.at_level("WARNING", logger="mycelia"):
        found = made(e2e={"enable": True, "sample_mode": 1}, op_debug_mode=3)
        assert found.sample_num == 0 and "tensors are written whole" in caplog.text
        found = made(e2e={"enable": True, "stat_calc_mode": "device"}, saved_data="full")
        assert not found.device_statistics and "'host' where saved_data is 'full'" in caplog.text
        device = {"enable": True, "stat_calc_mode": "device"}
        found = made(e2e=device, saved_data="statistic", statistic_category=["max", "md5"])
        assert found.device_statistics == "high" and found.columns == ["Max Value"]
        assert "no 'md5'" in caplog.text


def test_something_must_be_enabled():
    with pytest.raises(ValueError, match="'enable': true"):
        made(e2e={"enable": False})
    with pytest.raises(ValueError, match="e2e_dump_settings.enable"):
        made(e2e={"enable": "yes"})


def test_unknown_fields_are_told_and_ignored(caplog):
    with caplog.at_level("WARNING", logger="mycelia"):
        made(iterations="all")
    assert "'common_dump_settings.iterations' is unknown" in caplog.text


def test_files_that_cannot_be_read_are_errors(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        read(str(tmp_path / "missing.json"))
    (tmp_path / "bad.json").write_text("{'a': 1}")
    with pytest.raises(ValueError, match="is no JSON"):
        read(str(tmp_path / "bad.json"))


def test_iterations_by_the_old_rule_and_the_new():
    assert made(iteration=0).iterations is None and made(iteration="all").iterations is None
    assert made(iteration=7).iterations == ((7, 7),)
    chosen = made(iteration="0|5-8|100-120")
    assert [n for n in range(130) if chosen.has_iteration(n)] == [0, 5, 6, 7, 8, *range(100, 121)]
    unordered = made(iteration="7-9|2|8-12|2|7")
    assert [n for n in range(20) if unordered.has_iteration(n)] == [2, *range(7, 13)]


def test_the_asynchronous_section_serves_where_the_other_is_off():
    asynchronous = {"enable": True, "op_debug_mode": 3}
    content = {"common_dump_settings": {"path": "/tmp/d"}, "async_dump_settings": asynchronous}
    found = parse(content)
    assert found.asynchronous and found.op_debug_mode == 3
    assert not made().asynchronous


def test_kernels_match_names_parts_of_types_and_expressions():
    kernels = Kernels(["Default/Add-op1", "conv", "name-regex(Gradients/.*fc1.*)"])
    assert kernels.matches("Add", "Default/Add-op1") and not kernels.matches("Add", "Default/Add-op11")
    assert kernels.matches("Conv2DBackpropInput", "Gradients/x-op0")
    assert kernels.matches("MatMul", "Gradients/Default/fc1-Dense/MatMul-op0")
    assert not kernels.matches("MatMul", "Default/fc1-Dense/MatMul-op0")


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("path", "/tmp/\0x", "at most 255 bytes"),
        ("path", "/tmp/" + "a" * 300, "at most 255 bytes"),
        ("path", "/tmp/\ud800", "at most 255 bytes"),
        ("net_name", "a" * 300, "at most 255"),
        ("iteration", "9" * 5000, "'0|5-8|100-120'"),
        ("signal", "SIGKILL", "the name of a signal"),
        ("signal", 0, "the name of a signal"),
        ("kernels", ["name-regex(a{99999999999})"], "regular expressions"),
        ("kernels", ["name-regex(" + "(" * 5000 + ")" * 5000 + ")"], "regular expressions"),
        ("conditions", [{"condition": "nothing"}], "'conditions[0].condition'"),
        ("conditions", [{"condition": 1}], "'conditions[0]'"),
        ("conditions", [{"condition": "tensor_overflow", "more": 1}], "'conditions[0]'"),
        ("conditions", [{"condition": "tensor_overflow", "nodes": "Exp"}], "'conditions[0].nodes'"),
        ("conditions", [{"condition": "tensor_overflow", "nodes": [1]}], "'conditions[0].nodes'"),
        ("conditions", [{"condition": "tensor_too_large", "params": []}], "'conditions[0].params'"),
        ("conditions", [{"condition": "tensor_too_large", "params": {"max_gt": "x"}}], "max_gt"),
        ("conditions", [{"condition": "tensor_too_large", "params": {"max": 1}}], "'conditions[0].params'"),
        ("conditions", [{"condition": "rank_mismatch"}], "compares several"),
    ],
)
def test_what_would_fail_later_is_refused_at_once(field, value, expected):
    with pytest.raises(ValueError, match=f"'{field}") as error:
        made(**{field: value})
    assert expected in str(error.value) and len(str(error.value)) < 1000


WRONG = [
    None, True, False, 0, 1, -1, 2, 4, 0.5, float("inf"), float("nan"), 10**400, 2**63, "", "0", "all", "\0",
    "/" + "a" * 300, "../x", "/dev/null/x", [], [None], [[]], {}, {"a": 1}, "name-regex(", "9" * 5000, "5|",
    "SIGSTOP", "SIG_DFL", [1, "x"], [""], [True], {1: 2}, "\ud800", b"x", (1,), [{"condition": None}],
    [{"condition": "expression", "params": {"expression": "("}}], [{"condition": "dead_relu", "nodes": 5}],
]  # fmt: skip
FIELDS = {
    "common_dump_settings": [
        "dump_mode", "path", "net_name", "iteration", "saved_data", "input_output", "kernels",
        "support_device", "statistic_category", "op_debug_mode", "overflow_number", "initial_iteration",
        "layout", "naming", "last_steps", "last_bytes", "before", "after", "eager", "signal", "conditions",
    ],
    "e2e_dump_settings": [
        "enable", "trans_flag", "sample_mode", "sample_num", "save_kernel_args", "stat_calc_mode",
        "device_stat_precision_mode",
    ],
    "async_dump_settings": ["enable", "op_debug_mode", "file_format"],
}  # fmt: skip


@pytest.mark.parametrize("section", FIELDS)
def test_every_wrong_value_of_every_field_is_taken_or_refused_by_name(section):
    for field in FIELDS[section]:
        for wrong in WRONG:
            content = {"common_dump_settings": {"path": "/tmp/d"}, "e2e_dump_settings": {"enable": True}}
            content["async_dump_settings"] = {"enable": True}
            content[section] = {**content[section], field: wrong}
            if section == "async_dump_settings":
                content["e2e_dump_settings"]["enable"] = False
            try:
                assert parse(content).path
            except ValueError as error:
                assert f"{field}" in str(error) or "must have 'enable'" in str(error), (field, wrong)
                assert getattr(error, "code", "").startswith("MYC-"), (field, wrong)
