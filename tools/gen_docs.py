"""Writes docs/env-vars.md from the settings table: `python tools/gen_docs.py`;
a test asserts it is current.
"""

from __future__ import annotations

from pathlib import Path

from mycelia.config import SETTINGS, Setting

PAGE = Path(__file__).resolve().parent.parent / "docs" / "env-vars.md"

HEAD = """# Settings

One table in `mycelia.config` holds every setting; this page is generated from it by `tools/gen_docs.py`.

A value comes from `ms.set_context(key=value)`, else from the environment, else from the default. A setting
with several variables takes the first that is set. Settings without a `set_context` key are read from the
environment, and `mycelia.config.context(key=value)` changes any of them for the length of a `with` block.
Flags are switched on by `1`, `true` or `on`. `mycelia env` prints the values in force.
"""


def section(setting: Setting) -> str:
    lines = [f"### {setting.key}", "", setting.doc, ""]
    lines.append(f"* default: `{setting.default!r}`")
    if setting.choices:
        lines.append(f"* values: {', '.join(f'`{c!r}`' for c in setting.choices)}")
    if setting.env:
        lines.append(f"* environment: {', '.join(f'`{name}`' for name in setting.env)}")
    lines.append("* `set_context` key: " + ("yes" if setting.in_context else "no"))
    return "\n".join(lines) + "\n"


def page() -> str:
    settings = list(SETTINGS.values())
    parts = [HEAD, "## In effect\n", *(section(s) for s in settings if s.in_effect)]
    idle = [f"* `{s.key}` (default `{s.default!r}`): {s.missing}" for s in settings if not s.in_effect]
    note = "`set_context` takes these keys of MindSpore; a warning says, once, what does not happen."
    parts.append(f"## Accepted without effect\n\n{note}\n")
    return "\n".join([*parts, *idle]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"gen_docs: wrote {PAGE}")
