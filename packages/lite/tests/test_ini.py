"""Configuration files."""

from __future__ import annotations

import pytest

from mycelia_lite import ini


def test_sections_keys_and_comments(tmp_path):
    path = tmp_path / "a.cfg"
    path.write_text("# a comment\n\n[one]\n key = a=b # kept \n#other=1\n[ two ]\n[one]\nkey=\n")
    found = ini.read(path)
    assert [(s.name, s.values) for s in found] == [
        ("one", {"key": "a=b # kept"}),
        ("two", {}),
        ("one", {"key": ""}),
    ]
    assert found[2].place == f"{path}:7"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("key=1\n", r":1: the key 'key' stands before the first section"),
        ("[one\n", r":1: expected a section like \[name\], but got '\[one'"),
        ("[ ]\n", r":1: expected a section"),
        ("[one]\nword\n", r":2: expected key=value, but got 'word'"),
        ("[one]\n=1\n", r":2: expected key=value"),
        ("[one]\na=1\na=2\n", r":3: the key 'a' comes twice in \[one\]"),
        (b"[one]\na=\xff\n", r"no text in UTF-8"),
    ],
)
def test_what_is_no_configuration_is_told_with_its_line(tmp_path, text, reason):
    path = tmp_path / "a.cfg"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ini.IniError, match=reason) as caught:
        ini.read(path)
    assert str(path) in str(caught.value)
