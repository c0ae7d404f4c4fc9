"""Reading and writing .ms files."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from mycelia_lite.format import ENUMS, PRIMITIVES, TABLES, FormatError, Table, decode, encode, read, write
from mycelia_lite.format.schema import UNION, Field, TableType

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = ["convnet.ms", "convnet_w4.ms", "mixed.ms"]


def content(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def test_attributes_of_a_converted_convolution_are_those_of_its_onnx_model():
    model = read(FIXTURES / "convnet.ms")
    assert [node.name for node in model.nodes][:5] == ["conv1", "pool1", "conv2", "depthwise", "leaky"]
    conv = model.nodes[2].primitive
    assert conv.kind == "Conv2DFusion" and conv.kernel_size == [3, 3] and conv.stride == [2, 2]
    assert conv.pad_list == [0, 1, 0, 1] and conv.in_channel == 8 and conv.out_channel == 16
    assert conv.activation_type is ENUMS["ActivationType"]["RELU6"] and conv.pad_mode == 0
    assert model.nodes[3].primitive.group == 16
    assert model.nodes[4].primitive.alpha == np.float32(0.1)
    assert model.nodes[6].primitive.global_ is True
    names = [model.allTensors[i].name for i in model.nodes[2].inputIndex]
    assert names == ["pool1", "w2", "b2"]
    weight = model.allTensors[model.nodes[2].inputIndex[1]]
    assert (
        weight.dims == [16, 3, 3, 8] and weight.dataType.name == "FLOAT32" and len(weight.data) == 4 * 16 * 72
    )
    assert 0.1 < np.frombuffer(weight.data, "<f4").std() < 0.3


def test_quantization_parameters_of_every_channel_are_read():
    model = read(FIXTURES / "convnet_w4.ms")
    weight = model.allTensors[model.nodes[0].inputIndex[1]]
    assert weight.weightQuantCompressType.name == "BITPACKING" and len(weight.quantParams) == 8
    assert {p.numBits for p in weight.quantParams} == {4} and all(0 < p.scale < 1 for p in weight.quantParams)
    assert model.nodes[0].quantType.name == "QUANT_WEIGHT"


@pytest.mark.parametrize("name", FILES)
def test_a_real_file_is_the_same_after_writing_and_reading(name, tmp_path):
    model = read(FIXTURES / name)
    assert model == decode(content(name))
    write(tmp_path / "again.ms", model)
    again = read(tmp_path / "again.ms")
    assert again == model and encode(again) == encode(model) == (tmp_path / "again.ms").read_bytes()
    for before, after in zip(model.allTensors, again.allTensors):
        assert bytes(before.data) == bytes(after.data)


@pytest.mark.parametrize("name", FILES)
def test_weights_are_views_into_the_file_at_multiples_of_64_bytes(name):
    data = np.frombuffer(encode(decode(content(name))), np.uint8)
    base = data.ctypes.data
    weights = [np.frombuffer(t.data, np.uint8) for t in decode(data).allTensors if len(t.data)]
    assert weights
    for weight in weights:
        assert np.shares_memory(weight, data)
        assert (weight.ctypes.data - base) % 64 == 0


_INTEGERS = {"byte": 7, "ubyte": 8, "int": 31, "uint": 32, "long": 63}


def any_value(field: Field, rng: random.Random):
    """A value for the field that need not be its default."""
    if field.is_vector and field.type == "ubyte":
        return rng.randbytes(rng.choice((0, 1, 5, 64, 200)))
    if field.is_vector:
        element = dataclasses.replace(field, is_vector=False)
        return [any_value(element, rng) for _ in range(rng.randrange(4))]
    if field.type == UNION:
        return any_table(TABLES[rng.choice(PRIMITIVES[1:])], rng)
    if field.type in TABLES:
        kind = TABLES[field.type]
        return any_value(next(iter(kind.fields.values())), rng) if kind.is_box else any_table(kind, rng)
    if field.type in ENUMS:
        return rng.choice([*ENUMS[field.type].values(), 99])
    if field.type == "bool":
        return rng.random() < 0.5
    if field.type == "string":
        return rng.choice(("", "x", "Größe \u6a21", 'a "b"\\\n#\t{}', "@0 base64"))
    if field.type == "float":
        return rng.choice((0.0, -0.0, 1e-5, 3.4e38, 1e-45, math.inf, math.nan, rng.random()))
    if field.type == "double":
        return rng.choice((0.0, -0.0, 1e-5, 1.7e308, 5e-324, -math.inf, math.nan, rng.random()))
    top = 1 << _INTEGERS[field.type]
    low = 0 if field.type.startswith("u") else -top
    return rng.choice((low, top - 1, 0, rng.randrange(low, top)))


def any_table(kind: TableType, rng: random.Random) -> Table:
    chosen = [f for f in kind.fields.values() if rng.random() < 0.7]
    return Table(kind.name, **{f.name: any_value(f, rng) for f in chosen})


@pytest.mark.parametrize("name", [t.name for t in TABLES.values() if not t.is_box])
def test_every_field_of_a_table_comes_back(name):
    rng = random.Random(name)
    for _ in range(3):
        table = any_table(TABLES[name], rng)
        data = encode(table)
        again = decode(data, name)
        assert again == table
        assert encode(again) == encode(table.copy()) == data
        assert repr(again) == repr(decode(bytearray(data), name))


def test_fields_not_set_read_as_the_default_and_defaults_take_no_room():
    assert encode(Table("QuantParam", scale=1, numBits=8, narrowRange=True)) == encode(Table("QuantParam"))
    assert encode(Table("Tensor", dims=[], data=b"", name="")) == encode(Table("Tensor"))
    tensor = decode(encode(Table("Tensor")), "Tensor")
    assert (tensor.dims, tensor.name, bytes(tensor.data), tensor.format.name) == ([], "", b"", "NCHW")
    assert Table("CNode").primitive is None and Table("CNode").deviceType == -1
    tensor.dims.append(3)  # the list is the table's own
    assert tensor == Table("Tensor", dims=[3]) != Table("Tensor")


def test_repr_shows_what_is_set_in_few_words():
    table = Table("Activation", alpha=0.1, activation_type="LEAKY_RELU", approximate=False)
    assert repr(table) == "Table('Activation', activation_type=LEAKY_RELU, alpha=0.1)"
    tensor = Table("Tensor", dims=list(range(20)), data=bytes(100), quantClusters=[0.1])
    assert repr(tensor) == (
        "Table('Tensor', dims=[0, 1, 2, 3, 4, 5, 6, 7, ... 20 in all], data=<100 bytes>, quantClusters=[0.1])"
    )


def test_boxes_are_what_they_hold():
    pads = Table("PadFusion", paddings=[[0, 1], [], [2, 3]])
    assert decode(encode(pads), "PadFusion").paddings == [[0, 1], [], [2, 3]]
    node = Table("CNode", primitive=pads)
    assert decode(encode(node), "CNode").primitive == pads


def test_numpy_values_are_written_like_those_of_python():
    plain = Table("Tensor", dims=[2, 3], refCount=1, data=bytes(range(24)), quantClusters=[0.5, 0.1])
    arrays = Table(
        "Tensor",
        dims=np.array([2, 3]),
        refCount=np.int64(1),
        data=np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
        quantClusters=np.array([0.5, 0.1], np.float32),
    )
    assert encode(arrays) == encode(plain)
    assert arrays == plain == decode(encode(arrays), "Tensor")


def test_enums_are_set_by_name_or_number():
    one, two = Table("AvgPoolFusion", pad_mode="SAME"), Table("AvgPoolFusion", pad_mode=1)
    assert one == two and one.pad_mode.name == "SAME" and one.pad_mode == 1
    assert repr(one) == "Table('AvgPoolFusion', pad_mode=SAME)"
    with pytest.raises(ValueError, match=r"PadMode has no member 'SAMME'(.|\n)*did you mean SAME"):
        one.pad_mode = "SAMME"


def test_unknown_names_are_errors_that_tell_the_nearest():
    with pytest.raises(ValueError, match="no table 'Conv2DFussion'(.|\n)*did you mean Conv2DFusion"):
        Table("Conv2DFussion")
    with pytest.raises(AttributeError, match="no field 'kernel_sizes'(.|\n)*did you mean kernel_size"):
        Table("Conv2DFusion", kernel_sizes=[1, 1])
    with pytest.raises(AttributeError, match="strid"):
        Table("Conv2DFusion").strid  # noqa: B018
    assert not hasattr(Table("Conv2DFusion"), "data")


def test_no_field_has_the_name_of_something_that_every_table_has():
    own = set(dir(Table)) - {"__class__"}
    assert [f"{t.name}.{name}" for t in TABLES.values() for name in t.fields if name in own] == []


def test_copies_have_their_own_lists_and_share_weights():
    model = read(FIXTURES / "mixed.ms")
    for made in (model.copy(), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert made == model
        made.nodes[0].inputIndex[0] = 77
        made.allTensors[0].dims.append(1)
        assert made != model == read(FIXTURES / "mixed.ms")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (Table("CNode", inputIndex=[0, -1]), r"CNode.inputIndex\[1\]: -1 does not fit uint"),
        (Table("CNode", inputIndex=5), "CNode.inputIndex: a list is expected, not int 5"),
        (Table("CNode", name=b"x"), "CNode.name: a text is expected, not bytes"),
        (Table("CNode", name="\ud800"), "CNode.name: .* is no text"),
        (Table("CNode", primitive=Table("Tensor")), "CNode.primitive.value: the table of an operator"),
        (Table("CNode", deviceType=1.5), "CNode.deviceType: 1.5 does not fit int"),
        (Table("CNode", quantType=1 << 40), "CNode.quantType: 1099511627776 does not fit QuantType"),
        (Table("Tensor", data=3), "Tensor.data: bytes are expected, not int"),
        (Table("Tensor", quantParams=[Table("Vec")]), r"quantParams\[0\]: the table QuantParam is exp"),
        (Table("Dropout", keep_prob=1e39), "Dropout.keep_prob: 1e\\+39 does not fit float"),
        (Table("QuantParam", inited="yes"), "QuantParam.inited: True or False is expected, not 'yes'"),
        (Table("PadFusion", paddings=[[0, 1], 2]), r"PadFusion.paddings.data\[1\]: a list is expected"),
        (Table("MetaGraph", nodes=[Table("CNode"), None]), r"MetaGraph.nodes\[1\]: the table CNode"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_named_with_its_place(table, message):
    with pytest.raises(FormatError, match=message):
        encode(table)


def test_a_file_of_more_than_2_gib_is_refused():
    half = np.zeros(1 << 30, np.uint8)  # never touched, so it takes no memory
    with pytest.raises(FormatError, match="MetaGraph: more than 2147483647 bytes(.|\n)*externalData"):
        encode(Table("MetaGraph", allTensors=[Table("Tensor", data=half), Table("Tensor", data=half)]))


def changed(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def test_damage_is_named_with_its_place():
    data = encode(Table("MetaGraph", name="abc", nodes=[Table("CNode", name="n", primitive=Table("Abs"))]))
    with pytest.raises(FormatError, match="MetaGraph: 3 bytes are too few"):
        decode(data[:3])
    with pytest.raises(FormatError, match="MetaGraph: the file identifier is b'MSL1', not b'MSL2'"):
        decode(changed(data, 4, b"MSL1"))
    with pytest.raises(FormatError, match=r"MetaGraph: offset 123456 points behind the end \(\d+ bytes\)"):
        decode(changed(data, 0, struct.pack("<I", 123456)))
    with pytest.raises(FormatError, match="MetaGraph: offset is 0"):
        decode(changed(data, 0, bytes(4)))
    with pytest.raises(FormatError, match="MetaGraph: offset 30 is no multiple of 4|no multiple of 4"):
        decode(changed(data, 0, struct.pack("<I", struct.unpack_from("<I", data)[0] + 2)))
    name = data.index(b"\x03\0\0\0abc")
    with pytest.raises(FormatError, match="MetaGraph.name: 4294967295 elements at"):
        decode(changed(data, name, b"\xff" * 4))
    with pytest.raises(FormatError, match="MetaGraph.name: the text at .* is not UTF-8"):
        decode(changed(data, name + 4, b"\xff"))
    with pytest.raises(FormatError, match="MetaGraph.name: the text at .* does not end with a zero byte"):
        decode(changed(data, name + 7, b"x"))
    root = struct.unpack_from("<I", data)[0]
    with pytest.raises(FormatError, match="MetaGraph: offset .* of the vtable points outside"):
        decode(changed(data, root, struct.pack("<i", 1 << 30)))
    node = data.index(b"\x01\0\0\0n\0") - 4
    with pytest.raises(FormatError, match=r"MetaGraph.nodes\[0\]"):
        decode(data[:node] + b"\xff" * (len(data) - node))


def test_an_operator_that_is_not_known_is_named_by_its_number():
    data = encode(Table("CNode", primitive=Table("FillV2")))
    tag = TABLES["FillV2"].tag
    assert data.count(bytes([tag])) == 1
    with pytest.raises(
        FormatError, match="CNode.primitive.value: operator type 250 is not known, the last is 221"
    ):
        decode(data.replace(bytes([tag]), b"\xfa"), "CNode")


def test_an_error_of_a_file_names_it(tmp_path):
    path = tmp_path / "broken.ms"
    path.write_bytes(content("mixed.ms")[:100])
    with pytest.raises(FormatError, match="broken.ms: MetaGraph"):
        read(path)
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="broken.ms: MetaGraph: 0 bytes are too few"):
        read(path)
    with pytest.raises(FileNotFoundError, match="absent.ms"):
        read(tmp_path / "absent.ms")


def test_parts_that_are_used_over_and_over_are_refused():
    """A file of 200 KB whose nodes are all one node with many attributes would take gigabytes."""
    many = 5000
    custom = Table("Custom", attr=[Table("Attribute", name="a")] * many)
    data = bytearray(encode(Table("MetaGraph", nodes=[Table("CNode", primitive=custom)])))
    data += bytes(-len(data) % 8)
    root = struct.unpack_from("<I", data)[0]
    vtable = root - struct.unpack_from("<i", data, root)[0]
    field = root + struct.unpack_from("<H", data, vtable + TABLES["MetaGraph"].fields["nodes"].slot)[0]
    node = field + struct.unpack_from("<I", data, field)[0] + 4
    node += struct.unpack_from("<I", data, node)[0]
    # Offsets point ahead only: a copy of the node goes behind a new vector, which names it many times.
    vector = len(data)
    end = vector + 4 + 4 * many
    copy_at = end + (node - end) % 8
    copied = data[node:]
    copied[:4] = struct.pack("<i", copy_at - (node - struct.unpack_from("<i", data, node)[0]))
    offsets = [copy_at - (vector + 4 + 4 * i) for i in range(many)]
    data += struct.pack(f"<{1 + many}I", many, *offsets) + bytes(copy_at - end) + copied
    struct.pack_into("<I", data, field, vector - field)
    with pytest.raises(FormatError, match="parts are used many times"):
        decode(bytes(data))


def test_vtables_that_overlap_are_refused():
    """Every 20 bytes another vtable of 64 KB begins, with fields of a newer version: gigabytes in all."""
    many = 20000
    vtables = struct.pack("<10H", 65532, 4, *[0] * 8) * (many + 4000)
    nodes_slot = TABLES["MetaGraph"].fields["nodes"].slot
    root_vtable = struct.pack(f"<{nodes_slot // 2 + 1}H", nodes_slot + 2, 8, *[0] * (nodes_slot // 2 - 2), 4)
    root_vtable += bytes(-len(root_vtable) % 4)
    at = 8 + len(root_vtable)
    first = at + 8 + 4 + 4 * many  # tables, after the root and the vector of offsets to them
    start = first + 4 * many  # of the vtables
    data = struct.pack("<I4s", at, b"MSL2") + root_vtable + struct.pack("<iI", len(root_vtable), 4)
    data += struct.pack(f"<{1 + many}I", many, *[first - (at + 12)] * many)
    data += struct.pack(f"<{many}i", *[first + 4 * i - (start + 20 * i) for i in range(many)]) + vtables
    with pytest.raises(FormatError, match=r"nodes\[\d\]: parts are used many times"):
        decode(data)


def test_fields_of_a_newer_version_are_reported_and_never_lost_in_silence(monkeypatch):
    from mycelia_lite.format import to_text

    now = TABLES["CNode"]
    newer = dataclasses.replace(now, fields={**now.fields, "priority": Field("priority", 8, "int", False, 0)})
    with monkeypatch.context() as patch:
        patch.setitem(TABLES, "CNode", newer)
        data = encode(
            Table("MetaGraph", nodes=[Table("CNode", name="n"), Table("CNode", name="m", priority=3)])
        )
    model = decode(data)
    assert [node.unknown_fields for node in model.nodes] == [(), (8,)] and model.nodes[1].name == "m"
    with pytest.raises(FormatError, match=r"MetaGraph.nodes\[1\]: fields of a newer version, with ids \[8\]"):
        encode(model)
    with pytest.raises(FormatError, match=r"fields of a newer version, with ids \[8\]"):
        to_text(model)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.ms"
    write(path, Table("MetaGraph", name="old"))
    with pytest.raises(FormatError):
        write(path, Table("MetaGraph", nodes=[3]))
    assert read(path).name == "old" and [p.name for p in tmp_path.iterdir()] == ["model.ms"]
