"""The schema of .ms files, and the C++ header made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mycelia_lite.format.schema import ENUMS, PRIMITIVES, SCALARS, TABLES, UNION

ROOT = Path(__file__).parents[4]


def test_header_for_cpp_is_current():
    tool = ROOT / "tools/gen_lite_schema.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_type_that_a_field_names_exists():
    known = {*SCALARS, *ENUMS, *TABLES, "string", UNION}
    unknown = [
        f"{t.name}.{f.name}: {f.type}"
        for t in TABLES.values()
        for f in t.fields.values()
        if f.type not in known
    ]
    assert unknown == []


def test_numbers_of_the_format_stay():
    """A sample from front, middle and end of each list, as the files of MindSpore Lite 2.0.0 have them."""
    tags = {"Abs": 1, "Conv2DFusion": 35, "MatMulFusion": 89, "LSTMGrad": 167, "Custom": 191, "FillV2": 221}
    assert {name: PRIMITIVES.index(name) for name in tags} == tags
    assert {name: TABLES[name].tag for name in tags} == tags
    assert ENUMS["DataType"]["FLOAT32"] == 43 and ENUMS["ResizeMethod"]["UNKNOWN"] == -1
    assert ENUMS["Format"]["KHWC"] == 7 and ENUMS["ActivationType"]["UNKNOWN"] == 21
    slots = {("Conv2DFusion", "kernel_size"): 6, ("Primitive", "value"): 6, ("Tensor", "externalData"): 28}
    assert {key: TABLES[key[0]].fields[key[1]].slot for key in slots} == slots


def test_defaults_are_what_a_reader_of_32_bit_floats_gets():
    assert TABLES["LayerNormFusion"].fields["epsilon"].default == 9.999999747378752e-06
    assert TABLES["QuantParam"].fields["scale"].default == 1.0
    assert TABLES["FormatTranspose"].fields["src_format"].default is ENUMS["Format"]["NHWC"]
    assert TABLES["Conv2DFusion"].fields["kernel_size"].default is None
    assert TABLES["CNode"].fields["deviceType"].default == -1


def test_no_table_holds_itself():
    """Reading follows the schema, so how deep a file can lead is bounded by it."""

    def depth(name: str, above: tuple[str, ...]) -> int:
        assert name not in above, above
        inner = [f.type for f in TABLES[name].fields.values()]
        tables = {t for kind in inner for t in (PRIMITIVES[1:] if kind == UNION else [kind]) if t in TABLES}
        return 1 + max((depth(t, (*above, name)) for t in tables), default=0)

    assert depth("MetaGraph", ()) == 6  # MetaGraph, CNode, Primitive, PadFusion, Vec2D, Vec
