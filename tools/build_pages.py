"""Builds the pages of mycelia-insight: packages/insight/front -> packages/insight/src/mycelia_insight/pages.

`python tools/build_pages.py`; needs Node.js with npm, which fetches what front/package-lock.json names. Does
nothing if the sources are those of the last build. Without npm it says so and succeeds: all but the
pages works, and the service tells what is missing.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRONT = ROOT / "packages" / "insight" / "front"
PAGES = ROOT / "packages" / "insight" / "src" / "mycelia_insight" / "pages"
STAMP = PAGES / "sources.sha256"


def digest() -> str:
    """Of all sources of the pages."""
    found = hashlib.sha256()
    for path in sorted(p for p in FRONT.rglob("*") if p.is_file() and "node_modules" not in p.parts):
        found.update(f"{path.relative_to(FRONT)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return found.hexdigest()


def main() -> None:
    sources = digest()
    if STAMP.exists() and STAMP.read_text() == sources:
        return
    npm = shutil.which("npm")
    if npm is None:
        print("build_pages: npm is missing, so mycelia-insight has no pages; install Node.js, run this again")
        return
    for command in (["ci", "--no-audit", "--no-fund", "--loglevel=error"], ["run", "build", "--silent"]):
        result = subprocess.run(
            [npm, *command], cwd=FRONT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if result.returncode:
            sys.exit(f"{result.stdout}\nbuild_pages: npm {command[0]} failed (exit code {result.returncode})")
    STAMP.write_text(sources)
    print(f"build_pages: {PAGES.relative_to(ROOT)} is up to date")


if __name__ == "__main__":
    main()
