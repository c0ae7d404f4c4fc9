"""The folder of C sources: what is the same for all models, and the files of each."""

from __future__ import annotations

import contextlib
import json
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from mycelia.io.files import write_text
from mycelia_lite.enums import DataType
from mycelia_lite.micro import library, maps
from mycelia_lite.micro.emit import Emitter, numbers, wrapped
from mycelia_lite.micro.program import Border, Program

_MODEL_FILES = ("net{}.h", "net{}.c", "weight{}.h", "weight{}.c", "model{}.c")
_TOLERANCE = 1e-5  # of float outputs in the self-test: libraries round functions differently


@dataclass(frozen=True)
class Part:
    """A model: its C text, inputs for the self-test and what the runtime answers to them."""

    emitter: Emitter
    inputs: list[np.ndarray]
    outputs: list[np.ndarray]


def write(folder: Path, parts: list[Part]) -> None:
    """Write all files, and then put them in the folder; what another project has left there goes.

    Errors: OSError; the folder is then as it was, unless it was there and the last renames fail.
    """
    files = {
        "include/micro_api.h": _template("micro_api.h"),
        "include/model_handle.h": _handles(parts),
        "src/model.h": _template("model.h"),
        "src/model.c": _template("model.c"),
        "benchmark/benchmark.c": _template("benchmark.c"),
        "Makefile": _template("Makefile"),
        "CMakeLists.txt": _template("CMakeLists.txt"),
    }
    files["benchmark/data.h"], files["benchmark/data.c"] = _data(parts)
    files["src/kernels.h"], files["src/kernels.c"] = _kernels(parts)
    for i, part in enumerate(parts):
        files |= {f"src/model{i}/{name}": text for name, text in _model(part, i).items()}
    folder.parent.mkdir(parents=True, exist_ok=True)
    is_new = not folder.exists()
    beside = folder.parent if is_new else folder
    with tempfile.TemporaryDirectory(prefix=".micro", dir=beside) as temporary:
        made = Path(temporary) / "project"
        for name, text in files.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
        if is_new:
            made.rename(folder)
            return
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).replace(folder / name)
    _drop_models(folder, len(parts))


def _drop_models(folder: Path, first: int) -> None:
    """Remove the files of models from the number `first` on: builds would take them."""
    while (old := folder / "src" / f"model{first}").is_dir():
        for name in _MODEL_FILES:
            (old / name.format(first)).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # files of others lie there
            old.rmdir()
        first += 1


def _template(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _header(name: str, includes: list[str], body: str) -> str:
    guard = f"{name.upper()}_H_"
    opened = '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    closed = "#ifdef __cplusplus\n}\n#endif\n"
    lines = "".join(f"#include {i}\n" for i in includes)
    return f"#ifndef {guard}\n#define {guard}\n\n{lines}\n{opened}\n{body}\n\n{closed}\n#endif\n"


# ---- kernels


def _kernels(parts: list[Part]) -> tuple[str, str]:
    """(header, source) of the kernels that the models call."""
    used = library.closure({name for part in parts for name in part.emitter.used})
    shared = [p for p in used if not p.is_local]
    called = library.closure(p.name for p in shared)
    head = "\n\n".join([p.code for p in shared if p.is_type] + [p.head for p in shared if not p.is_type])
    body = "\n\n".join(p.text for p in called if not p.is_type)
    includes = "#include <math.h>\n#include <string.h>\n"
    return (
        _header("micro_kernels", ["<stdint.h>"], head),
        f'#include "kernels.h"\n\n{includes}\n{body}\n',
    )


# ---- a model


def _model(part: Part, i: int) -> dict[str, str]:
    emitter = part.emitter
    name = emitter.name
    program = emitter.program
    borders = _borders(emitter)
    begin = _begin(emitter)
    weights_head, weights = emitter.weight_files()
    local = [p.text for p in library.closure(emitter.used) if p.is_local and _is_called(p.name, emitter)]
    arena = emitter.where.placement.arena_bytes
    declared = [f"#define {name.upper()}_ARENA_BYTES {max(8, arena)}"]
    for kind, tensors in (("INPUT", program.inputs), ("OUTPUT", program.outputs)):
        for k, border in enumerate(tensors):
            if program.values[border.value].data is None:
                place = emitter.where.place(program, border.value)
                declared.append(
                    f"#define {name.upper()}_{kind}_{k} {place} /* place in the arena: {_comment(border)} */"
                )
    if program.states:
        declared.append(
            f"/* Gives the variables their first elements. */\nvoid {name}_begin(uint8_t *arena);"
        )
    declared.append(
        "/* The arena is aligned for 8 bytes; inputs are overwritten. Gives 0, or the number of the call\n"
        " * that met a place outside of its tensor: the outputs are then undefined. */\n"
        f"int32_t {name}_run(uint8_t *arena);"
    )
    unused = "" if emitter.calls and any("arena" in c for c in emitter.calls) else "    (void)arena;\n"
    source = [
        f'#include "net{i}.h"\n\n#include <math.h>\n#include <string.h>',
        f'#include "../kernels.h"\n#include "weight{i}.h"',
        *local,
        emitter.parameter_text(),
        emitter.function_text(),
        begin,
        f"int32_t {name}_run(uint8_t *arena)\n{{\n{unused}{_calls(emitter)}\n    return 0;\n}}",
    ]
    texts = (
        _header(f"{name}_net", ["<stdint.h>"], "\n".join(declared)),
        "\n\n".join(text for text in source if text) + "\n",
        _header(f"{name}_weight", ["<math.h>", "<stdint.h>"], weights_head),
        f'#include "weight{i}.h"\n\n{weights}\n',
        _api(part, i, borders),
    )
    return dict(zip([file.format(i) for file in _MODEL_FILES], texts, strict=True))


def _is_called(name: str, emitter: Emitter) -> bool:
    """Whether a loop of the model calls the function, perhaps by another one."""
    direct = {n for text in emitter.functions for n in library._NAME.findall(text)}
    return name in {p.name for p in library.closure(direct)}


def _comment(border: Border) -> str:
    return border.name.replace("*/", "* /")


def _calls(emitter: Emitter) -> str:
    lines = []
    for item, call in zip(emitter.items, emitter.calls):
        label = " ".join(text for text in (item.kind, item.node) if text).replace("*/", "* /")
        lines += ([f"    /* {label} */"] if label else []) + [f"    {call}"]
    return "\n".join(lines)


def _begin(emitter: Emitter) -> str:
    program = emitter.program
    if not program.states:
        return ""
    lines = []
    for state in program.states:
        size = program.values[state.now].bytes
        target = emitter.pointer(state.now, False)
        if not state.first.tobytes().strip(b"\0"):
            lines.append(f"    memset({target}, 0, {size});")
        else:
            lines.append(f"    memcpy({target}, {emitter.weight(state.first)}, {size});")
    return f"void {emitter.name}_begin(uint8_t *arena)\n{{\n" + "\n".join(lines) + "\n}"


def _borders(emitter: Emitter) -> str:
    """The table of inputs and outputs."""
    program: Program = emitter.program
    shapes, rows = [], []
    for k, border in enumerate(program.inputs + program.outputs):
        value = program.values[border.value]
        sizes = ", ".join(map(str, value.shape)) or "1"
        shapes.append(f"static const int64_t shape{k}[{max(1, len(value.shape))}] = {{{sizes}}};")
        place, constant = "0", "0"
        if value.data is None:
            place = str(emitter.where.place(program, border.value))
        else:
            constant = emitter.weight(value.data)
        kind = f"kMSDataType{_TYPE_NAMES[DataType.of(value.dtype)]}"
        rows.append(
            f"    {{{json.dumps(border.name)}, shape{k}, {constant}, {place}, "
            f"{value.bytes}, {value.size}, {len(value.shape)}, {kind}}}"
        )
    return "\n".join(shapes) + "\n\nstatic const MicroTensor about[] = {\n" + ",\n".join(rows) + "\n};"


_TYPE_NAMES = {
    t: f"NumberType{'U' if t.name.startswith('UINT') else ''}{t.name.removeprefix('U').capitalize()}"
    for t in DataType
    if t
}


def _api(part: Part, i: int, borders: str) -> str:
    emitter = part.emitter
    name, program = emitter.name, emitter.program
    count = len(program.inputs) + len(program.outputs)
    tensors = ", ".join(f"{{&about[{k}], &arena}}" for k in range(count))
    handles = ", ".join(f"&tensors[{k}]" for k in range(count))
    begin = f"{name}_begin" if program.states else "0"
    return (
        f'#include "../model.h"\n#include "model_handle.h"\n#include "net{i}.h"\n#include "weight{i}.h"\n\n'
        f"{borders}\n\nstatic const MicroModel about_model = {{{name.upper()}_ARENA_BYTES, "
        f"{len(program.inputs)}, {len(program.outputs)}, {begin}, {name}_run}};\n\n"
        f"static uint8_t *arena;\nstatic struct MSTensor tensors[{count}] = {{{tensors}}};\n"
        f"static MSTensorHandle handles[{count}] = {{{handles}}};\n"
        f"static struct MSModel model = {{&about_model, handles, &arena}};\n\n"
        f"MSModelHandle model{i} = &model;\n"
    )


def _handles(parts: list[Part]) -> str:
    lines = [f"extern MSModelHandle model{i}; /* {part.emitter.name} */" for i, part in enumerate(parts)]
    return _header("model_handle", ['"micro_api.h"'], "\n".join(lines))


# ---- the self-test


def _data(parts: list[Part]) -> tuple[str, str]:
    workspace = -(-max(8, *(part.emitter.where.placement.arena_bytes for part in parts)) // 8)
    head = f"""/* What the self-test gives the models, and what it expects. */
typedef struct MicroData {{
    const char *name;
    MSModelHandle *model;
    const void *const *inputs;
    const void *const *outputs;
    double tolerance; /* of the largest element of an output */
}} MicroData;

extern const MicroData micro_data[];
extern const size_t micro_data_count;
extern uint64_t micro_workspace[{workspace}];"""
    body, rows = [], []
    for i, part in enumerate(parts):
        for kind, arrays in (("inputs", part.inputs), ("outputs", part.outputs)):
            for k, array in enumerate(arrays):
                text = wrapped(numbers(np.ascontiguousarray(array)) or ["0"])
                c_type = maps.C_TYPES.get(array.dtype.name, "uint16_t")
                body.append(f"static const {c_type} {kind}{i}_{k}[{max(1, array.size)}] = {{\n{text}\n}};")
            names = ", ".join(f"{kind}{i}_{k}" for k in range(len(arrays))) or "0"
            body.append(f"static const void *const {kind}{i}[] = {{{names}}};")
        exact = all(array.dtype.kind != "f" for array in part.outputs)
        tolerance = "0.0" if exact else str(_TOLERANCE)
        rows.append(f'    {{"{part.emitter.name}", &model{i}, inputs{i}, outputs{i}, {tolerance}}}')
    body.append("const MicroData micro_data[] = {\n" + ",\n".join(rows) + "\n};")
    body.append(f"const size_t micro_data_count = {len(parts)};")
    return (
        _header("micro_data", ["<stddef.h>", "<stdint.h>", '"model_handle.h"'], head),
        '#include "data.h"\n\n#include <math.h>\n\n'
        + "\n".join(body)
        + f"\n\nuint64_t micro_workspace[{workspace}];\n",
    )
