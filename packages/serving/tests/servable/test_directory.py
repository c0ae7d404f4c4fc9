"""Folders of servables, their versions, and which of them run."""

from __future__ import annotations

import pytest

from mycelia_serving.servable import directory
from mycelia_serving.servable.directory import VersionPolicy


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "add"
    home.mkdir()
    (home / "servable_config.py").write_text("")
    for name in ("1", "2", "10", "0", "03", "-4", "5.tmp", "v6", "99999999999", "٣"):
        (home / name).mkdir()
    (home / "7").write_text("a file")
    (home / "1" / "a.mindir").write_text("")
    return str(home)


def test_versions_are_folders_with_whole_numbers_in_order_of_number(folder):
    assert directory.versions(folder) == [1, 2, 10]


def test_the_newest_version_is_the_largest_number(folder):
    assert directory.choose_version(folder, 0, True) == 10
    assert directory.choose_version(folder, 2, True) == 2


def test_a_version_that_is_not_there_is_named(folder):
    with pytest.raises(RuntimeError, match=r"version 3 .*add: there are 1, 2, 10"):
        directory.choose_version(folder, 3, True)


def test_a_servable_without_models_needs_no_version(tmp_path):
    assert directory.choose_version(str(tmp_path), 0, False) == 1
    with pytest.raises(RuntimeError, match="no version of the servable"):
        directory.choose_version(str(tmp_path), 0, True)
    with pytest.raises(RuntimeError, match="version 2 .* there is none"):
        directory.choose_version(str(tmp_path), 2, False)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "not empty"),
        ("..", "not a path"),
        (".", "not a path"),
        ("../add", "not a path"),
        ("a/b", "not a path"),
        ("/etc", "not a path"),
        ("add\0", "not a path"),
        ("sub", "does not exist"),
    ],
)
def test_a_name_leads_to_a_folder_in_the_directory_or_nowhere(folder, tmp_path, name, message):
    with pytest.raises(RuntimeError, match=message):
        directory.find(str(tmp_path), name)


def test_what_a_servable_needs_is_named(folder, tmp_path):
    assert directory.find(str(tmp_path), "add") == folder
    with pytest.raises(RuntimeError, match="nowhere does not exist"):
        directory.find(str(tmp_path / "nowhere"), "add")
    (tmp_path / "bare").mkdir()
    with pytest.raises(RuntimeError, match="has no servable_config.py"):
        directory.find(str(tmp_path), "bare")


@pytest.mark.parametrize("file", ["../2/a.mindir", "../../x", "/etc/passwd", "", ".", "sub/../../2/a"])
def test_model_files_lie_in_the_folder_of_their_version(folder, file):
    with pytest.raises(RuntimeError, match="should lie in the folder of its version"):
        directory.model_path(folder, 1, file)


def test_a_missing_model_file_is_named(folder):
    assert directory.model_path(folder, 1, "a.mindir") == f"{folder}/1/a.mindir"
    assert directory.model_path(folder, 1, "./x/../a.mindir") == f"{folder}/1/a.mindir"
    with pytest.raises(RuntimeError, match="1/b.mindir does not exist"):
        directory.model_path(folder, 1, "b.mindir")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("latest", [10]),
        ("latest:2", [2, 10]),
        ("latest:9", [1, 2, 10]),
        ("all", [1, 2, 10]),
        ("specific:1,10,4", [1, 10]),
    ],
)
def test_policies_choose_versions(text, chosen):
    policy = VersionPolicy.parse(text)
    assert policy.choose([1, 2, 10]) == chosen
    assert policy.choose([]) == []
    assert VersionPolicy.parse(str(policy)) == policy


@pytest.mark.parametrize(
    "text", ["", "newest", "latest:", "latest:0", "latest:-1", "specific:", "specific:1,,2"]
)
def test_other_policies_are_errors(text):
    with pytest.raises(RuntimeError, match="should be latest, latest:N, all or specific"):
        VersionPolicy.parse(text)
