"""Installs a browser for the tests of pages where one command does: Debian's packages, as root.

Elsewhere it says what to install; tests of pages are skipped without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess

PACKAGES = ["chromium", "chromium-driver"]
PATIENCE = 300  # seconds


def main() -> None:
    if shutil.which("chromium") and shutil.which("chromedriver"):
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        print(f"install_browser: for the tests of pages install {' and '.join(PACKAGES)}")
        return
    try:
        for command in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *PACKAGES]):
            subprocess.run(
                ["apt-get", *command], check=True, timeout=PATIENCE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            )  # fmt: skip
    except (subprocess.SubprocessError, OSError) as error:
        print(f"install_browser: no browser could be installed ({error}); tests of pages are skipped")


if __name__ == "__main__":
    main()
