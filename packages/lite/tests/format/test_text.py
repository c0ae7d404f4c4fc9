"""Models as text."""

from __future__ import annotations

import random

import pytest

from mycelia_lite.format import TABLES, FormatError, Table, encode, from_text, read, to_text, write

from .test_flatbuffer import FILES, FIXTURES, any_table


@pytest.mark.parametrize("name", FILES)
def test_text_of_a_real_file_gives_the_same_bytes(name):
    model = read(FIXTURES / name)
    text = to_text(model)
    assert from_text(text) == model  # all content; where tables lie in the file is the writer's choice
    assert encode(from_text(text)) == encode(model) and to_text(from_text(text)) == text


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_this_writer_comes_back_byte_for_byte(name, tmp_path):
    write(tmp_path / "ours.ms", read(FIXTURES / name))
    write(tmp_path / "again.ms", from_text(to_text(read(tmp_path / "ours.ms"))))
    assert (tmp_path / "again.ms").read_bytes() == (tmp_path / "ours.ms").read_bytes()


@pytest.mark.parametrize("name", [t.name for t in TABLES.values() if not t.is_box])
def test_text_of_every_table_gives_the_same_bytes(name):
    rng = random.Random(f"text {name}")
    for _ in range(3):
        table = any_table(TABLES[name], rng)
        again = from_text(to_text(table))
        assert again == table and encode(again) == encode(table)


def test_text_reads_well(request):
    golden = FIXTURES / "mixed.txt"
    text = to_text(read(FIXTURES / "mixed.ms"))
    if request.config.getoption("regen"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_text_by_hand_is_free_in_its_layout():
    text = """# a model
    MetaGraph { name: "m" inputIndex: [0 1,] nodes: [ CNode { primitive: Activation { alpha: 1e-1,
        activation_type: 3 } name : "act" } ] allTensors: [Tensor{data:INT32[1, -2]} Tensor { data: "ab" }
        Tensor { data: @7 } ] fmkType: ONNX } # end
@7 base64
AQID  # three bytes
BA==
"""
    model = from_text(text)
    assert model.nodes[0].primitive == Table("Activation", alpha=0.1, activation_type="RELU6")
    assert [bytes(t.data) for t in model.allTensors] == [b"\1\0\0\0\xfe\xff\xff\xff", b"ab", b"\1\2\3\4"]
    assert model.inputIndex == [0, 1] and model.fmkType.name == "ONNX"


def test_hashes_stand_for_the_weights_of_another_model():
    model = read(FIXTURES / "convnet.ms")
    text = to_text(model, data="hash").replace('name: "leaky"', 'name: "renamed"', 1)
    assert len(text) < 8000
    edited = from_text(text, weights=model)
    assert edited.nodes[4].name == "renamed"
    edited.nodes[4].name = "leaky"
    assert edited == model
    with pytest.raises(FormatError, match="the bytes of @0 are not there, only their hash(.|\n)*weights"):
        from_text(text)
    with pytest.raises(FormatError, match="the bytes of @0 are not there"):
        from_text(text, weights=read(FIXTURES / "mixed.ms"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected a table, found 'the end'"),
        ("Nothing {}", "line 1: expected a table, found 'Nothing'"),
        ("MetaGraph {\n  naem: 3\n}", "line 2: MetaGraph has no field 'naem'. did you mean name"),
        ("MetaGraph {\n  name: 3\n}", "line 2: name is '3': string is expected"),
        ('MetaGraph { name: "a" name: "b" }', "line 1: MetaGraph has name twice"),
        ("MetaGraph {\n nodes: [\n  Tensor {} ] }", "line 3: expected the table CNode, found 'Tensor'"),
        ("CNode { primitive: Tensor {} }", "line 1: Tensor is no operator"),
        ("CNode { inputIndex: [1, x] }", "line 1: inputIndex is 'x': uint is expected"),
        ("CNode { inputIndex: [1, 2", "line 1: inputIndex is 'the end'"),
        ("CNode { quantType: QUANT_ALLL }", "quantType is 'QUANT_ALLL': did you mean QUANT_ALL"),
        ("Tensor { data: @3 }", "line 1: @3 does not stand behind the model"),
        ("Tensor { data: INT8[300] }", "are no elements of INT8"),
        ("Tensor { data: INT8[1, 2", "expected a number, found 'the end'"),
        ("Tensor { data: @0 }\n@0 base64\n!!!\n", "line 2: @0 is not base64"),
        ("Tensor {}\n@0 base64\nAAAA\n@1 base65\n", "line 4: expected `@n base64`"),
        ("Tensor {}\n@0 base64\nAAAA\n@0 base64\nAAAA\n", "line 4: @0 stands here a second time"),
        ("Tensor {} }", "line 1: expected the end of the model, found '}'"),
        ("Tensor { ; }", "line 1: '; }' cannot be read"),
        ("Dropout { keep_prob: 1.5.2 }", "line 1: keep_prob is '1.5.2': float is expected"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_line(text, message):
    with pytest.raises(FormatError) as caught:
        from_text(text)
    assert message in str(caught.value)


def test_nan_keeps_what_is_in_it():
    import struct

    odd = struct.unpack("<f", struct.pack("<I", 0x7FC00123))[0]
    table = Table("ConstantOfShape", value=[odd, float("nan"), float("-inf"), -0.0])
    text = to_text(table)
    assert "value: [nan:7fc00123, nan, -inf, -0.0]" in text
    assert encode(from_text(text)) == encode(table)


def test_bytes_that_are_no_whole_numbers_are_written_as_they_are():
    for data in (b"\1\2\3", bytes(range(200)), b"\x01\x00\xc0\x7f"):
        tensor = Table("Tensor", dataType="FLOAT32", data=data)
        assert bytes(from_text(to_text(tensor)).data) == data
