"""Weights in files of their own."""

from __future__ import annotations

import pytest

from mycelia_lite.format import FormatError, Table, data_of


def external(**fields) -> Table:
    return Table("Tensor", name="w", externalData=[Table("ExternalData", **fields)])


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "net.msw").write_bytes(bytes(range(200)))
    (tmp_path / "secret").write_bytes(b"secret")
    return folder


def test_bytes_in_the_model_come_first(folder):
    tensor = external(location="net.msw")
    tensor.data = b"abc"
    assert bytes(data_of(tensor, folder)) == b"abc"
    assert bytes(data_of(Table("Tensor"), folder)) == b""


def test_a_part_of_another_file_is_read_when_asked_for(folder):
    assert bytes(data_of(external(location="net.msw", offset=64, length=3), folder)) == b"\x40\x41\x42"
    assert bytes(data_of(external(location="net.msw", offset=198), folder)) == b"\xc6\xc7"
    assert bytes(data_of(external(location="net.msw", offset=200, length=0), folder)) == b""


def test_check_sum_is_the_first_byte_signed_or_not(folder):
    for sum_, offset in (("64", 64), ("198", 198), (str(2**64 - 58), 198)):
        assert (
            len(data_of(external(location="net.msw", offset=offset, checkSum=sum_), folder)) == 200 - offset
        )
    with pytest.raises(FormatError, match=r"net.msw: Tensor 'w': the check sum of its data is not '65'"):
        data_of(external(location="net.msw", offset=64, checkSum="65"), folder)


@pytest.mark.parametrize(
    "location", ["../secret", "/etc/hostname", "", ".", "a/../../secret", "x\0y", "link"]
)
def test_nothing_outside_of_the_folder_is_read(location, folder):
    (folder / "link").symlink_to(folder.parent / "secret")
    with pytest.raises(FormatError, match="not inside the model's folder"):
        data_of(external(location=location), folder)


@pytest.mark.parametrize(
    "fields", [{"offset": -1}, {"offset": 201}, {"offset": 100, "length": 101}, {"length": -2}]
)
def test_parts_that_are_not_there_are_errors(fields, folder):
    with pytest.raises(FormatError, match="in a file of 200 bytes"):
        data_of(external(location="net.msw", **fields), folder)


def test_a_file_that_is_not_there_is_named(folder):
    with pytest.raises(FileNotFoundError, match=r"absent.msw"):
        data_of(external(location="absent.msw"), folder)
    two = Table("Tensor", externalData=[Table("ExternalData", location="net.msw")] * 2)
    with pytest.raises(FormatError, match="2 files"):
        data_of(two, folder)
