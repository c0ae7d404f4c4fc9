"""The docs are true: hooks, settings, error codes and commands have their places, links lead somewhere."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mycelia import config, errors, hookspecs

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SOURCES = [
    path
    for pattern in ("packages/*/src/**/*.py", "packages/*/native/**/*.cc", "packages/*/native/**/*.h")
    for path in ROOT.glob(pattern)
    if not path.name.endswith("_pb2.py")
]


def headings(page: str) -> list[str]:
    return re.findall(r"(?m)^#+ (.+)$", (DOCS / page).read_text())


def hooks() -> list:
    return [f for name, f in vars(hookspecs).items() if name.startswith("mycelia_")]


@pytest.mark.parametrize("hook", hooks(), ids=lambda f: f.__name__)
def test_hook_has_a_heading_with_its_exact_arguments(hook):
    assert f"`{hook.__name__}{inspect.signature(hook)}`" in headings("hooks.md")


def test_hooks_page_describes_no_hook_that_is_gone():
    described = {h.strip("`").partition("(")[0] for h in headings("hooks.md") if h.startswith("`")}
    assert described == {f.__name__ for f in hooks()}


def test_settings_page_is_up_to_date():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import gen_docs
    finally:
        sys.path.pop(0)
    assert gen_docs.PAGE.read_text() == gen_docs.page(), "run: python tools/gen_docs.py"


def test_every_environment_variable_in_the_sources_is_in_the_settings_table():
    known = {name for setting in config.SETTINGS.values() for name in setting.env}
    read = {}
    for path in SOURCES:
        for name in re.findall(r"""(?:environ(?:\.get)?[\[(]|getenv\()\s*["'](\w+)["']""", path.read_text()):
            read.setdefault(name, path.relative_to(ROOT))
    assert {name: str(path) for name, path in read.items() if name not in known} == {}


def test_every_error_code_has_its_heading():
    used = {code for path in SOURCES for code in re.findall(r"MYC-[A-Z]+", path.read_text())}
    assert used | set(errors.codes()) <= set(headings("errors.md"))


def test_errors_page_names_the_class_of_every_code():
    text = (DOCS / "errors.md").read_text()
    for code, kind in errors.codes().items():
        assert f"| [{code}](#{code.lower()}) | `{kind.__qualname__}` |" in text


def pages() -> list[Path]:
    return [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        *sorted(DOCS.glob("*.md")),
        *sorted(ROOT.glob("packages/*/README.md")),
        *sorted(ROOT.glob("examples/*/README.md")),
    ]


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        file, _, fragment = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{page.name}: {target} does not exist"
        if fragment:
            found = {anchor(h) for h in re.findall(r"(?m)^#+ (.+)$", path.read_text())}
            assert fragment in found, f"{page.name}: {target}: no such heading"


def test_readme_of_every_package_is_short():
    for path in ROOT.glob("packages/*/README.md"):
        assert 8 <= len(path.read_text().splitlines()) <= 40, path


@pytest.mark.parametrize("command", ["info", "env", "plugins"])
def test_commands_named_in_the_guide_run(command):
    result = subprocess.run([sys.executable, "-m", "mycelia.cli", command], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f"`mycelia {command}`" in (DOCS / "index.md").read_text()


def test_architecture_names_only_what_exists():
    inside = (
        "packages/core/src/mycelia",
        "packages/core/src/mycelia/engine",
        "packages/core/src/mycelia-stubs",
        "packages/core/native",
        "packages/backend-cpu/native/kernels",
    )
    places = [ROOT, *(ROOT / place for place in inside)]
    text = re.sub(r"(?s)```.*?```", "", (DOCS / "architecture.md").read_text())
    named = {t for t in re.findall(r"`([\w./-]+)`", text) if "/" in t or t.endswith((".py", ".def", ".toml"))}
    missing = {t for t in named if not any((place / t).exists() for place in places)}
    assert missing == {"plugin.py"}  # each package has one


def test_architecture_names_every_module_of_core():
    text = (DOCS / "architecture.md").read_text()
    core = ROOT / "packages/core/src/mycelia"
    modules = {
        *(p.name for place in (core, core / "faces") for p in place.glob("*.py")),
        *(p.parent.name for place in ("", "engine/", "faces/") for p in core.glob(f"{place}*/__init__.py")),
    }
    unnamed = {m for m in modules if f"`{m}`" not in text and f"/{m}`" not in text}
    assert unnamed <= {"__init__.py"}


def test_architecture_lists_every_pass_of_the_compiler():
    from mycelia.engine.compile.passes import pipeline
    from mycelia.engine.compile.passes.pass_manager import STAGES

    rows = re.findall(r"^\| (\w+) \| ([\w, ]+) \|", (DOCS / "architecture.md").read_text(), re.MULTILINE)
    told = {(stage, name) for stage, names in rows if stage in STAGES for name in names.split(", ")}
    assert told == {(stage, step.name) for stage in STAGES for step in pipeline(stage)}


def test_guide_lists_as_missing_only_what_is_missing():
    import mycelia as ms

    table = (DOCS / "guide.md").read_text().split("## What is not there")[1]
    first_cells = [line.split("|")[1] for line in table.splitlines() if "| not there" in line]
    names = {n.removeprefix("mindspore.") for cell in first_cells for n in re.findall(r"`([\w.]+)`", cell)}
    assert names
    assert {n for n in names if any(hasattr(part, n) for part in (ms, ms.ops, ms.nn, ms.train))} == set()
