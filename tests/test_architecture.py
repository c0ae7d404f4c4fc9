"""The rules that keep the parts apart: who imports whom, what a small import loads, one version for all."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = sorted(p.parent for p in ROOT.glob("packages/*/pyproject.toml"))
OTHERS = [p for p in PACKAGES if p.name != "core"]


def test_import_rules_hold():
    lint = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    result = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def imported_from_core(tree: ast.AST) -> list[str]:
    """All dotted names below `mycelia` that a module imports, at its top or inside functions."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name.split(".")[0] == "mycelia"]


@pytest.mark.parametrize("package", OTHERS, ids=lambda p: p.name)
def test_packages_use_only_public_names_of_core(package):
    private = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in package.glob("src/**/*.py")
        for name in imported_from_core(ast.parse(path.read_text()))
        if any(part.startswith("_") and part != "__version__" for part in name.split("."))
    ]
    assert private == []


def in_fresh_process(code: str):
    """What `code` leaves in the variable `result`, run by a new interpreter."""
    script = f"{code}\nimport json\nprint(json.dumps(result))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_minimal_core_loads_neither_products_nor_training_nor_files():
    loaded = in_fresh_process(
        "import sys, mycelia.ir, mycelia.ops, mycelia.autodiff\nresult = sorted(sys.modules)"
    )
    unwanted = {
        *(
            f"mycelia.{part}"
            for part in ("nn", "train", "dataset", "io", "compile", "parallel", "debug", "cli", "testing")
        ),
        *(
            "google.protobuf",
            "typer",
            "rich",
            "grpc",
            "pluggy",
            "logging",
            "importlib.metadata",
            "multiprocessing",
        ),
        *(f"mycelia_{p.name.replace('-', '_')}" for p in OTHERS),
    }
    assert sorted(unwanted & set(loaded)) == []


def test_minimal_core_is_small():
    # resident megabytes beyond those of NumPy alone; measured 8
    code = """
import numpy
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
before = resident()
import mycelia.ir, mycelia.ops, mycelia.autodiff
result = resident() - before
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("resident memory is read from /proc")
    assert in_fresh_process(code) < 15


def test_all_packages_have_one_version():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import release
    finally:
        sys.path.pop(0)
    assert len(release.state()) == 8
    assert release.problems() == []


def test_environments_install_the_same():
    import tomllib

    envs = tomllib.loads((ROOT / "hatch.toml").read_text())["envs"]
    assert envs["default"]["dependencies"] == envs["hatch-test"]["dependencies"]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.name)
def test_package_has_the_common_shape(package):
    (source,) = (folder for folder in (package / "src").iterdir() if not folder.name.endswith("-stubs"))
    assert source.name == (
        "mycelia" if package.name == "core" else f"mycelia_{package.name.replace('-', '_')}"
    )
    for name in ("__init__.py", "cli.py"):
        assert (source / name).is_file(), name
    assert (source / ("builtin.py" if package.name == "core" else "plugin.py")).is_file()
    assert (package / "README.md").is_file() and any((package / "tests").rglob("test_*.py"))


#: What a C program that links the kernels must bring: the C library's memory functions,
#: libm, the compiler's own, and snprintf for the texts of those kernels that can fail (gc-sections drops it
#: where none of them is used).
ALLOWED = re.compile(
    r"mem(cpy|move|set|cmp)|str(cmp|len|ncmp)|snprintf|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_"
    r"|__cpu_(model|features2|indicator_init)|__(mul|div|udiv|mod|umod)\w{2}3|__(extend|trunc)\w+2"
    r"|(sin|cos|tan|sinh|cosh|tanh|asin|acos|atan|atan2|asinh|acosh|atanh|exp|exp2|expm1|log|log2|log10|log1p"
    r"|pow|sqrt|cbrt|hypot|erf|erfc|tgamma|lgamma|lgamma_r|floor|ceil|trunc|round|rint|nearbyint|fmod|remainder"
    r"|fma|fmin|fmax|ldexp|frexp|modf|copysign|nextafter|sincos|fabs|lrint|llrint|lround|j0|j1|y0|y1)f?"
)


def kernel_library() -> Path:
    """The library of the latest build, whichever tree it was made in."""
    built = list(ROOT.glob("packages/backend-cpu/build/*/kernels/libmycelia_kernels.a"))
    assert built, "the kernel library is not built: python tools/build_native.py backend-cpu"
    return max(built, key=lambda path: path.stat().st_mtime)


def test_kernel_library_needs_only_the_c_and_math_libraries():
    listing = subprocess.run(["nm", str(kernel_library())], capture_output=True, text=True, check=True).stdout
    defined, undefined = set(), set()
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) == 2 and fields[0] == "U":
            undefined.add(fields[1])
        elif len(fields) == 3:
            defined.add(fields[2])
    needed = sorted(name for name in undefined - defined if not ALLOWED.fullmatch(name))
    assert needed == []
