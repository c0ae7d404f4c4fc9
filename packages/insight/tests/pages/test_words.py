"""The pages speak English and Chinese: both have the same words."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FRONT = Path(__file__).parents[2] / "front"


@pytest.fixture(scope="module")
def topics() -> dict:
    if not shutil.which("node") or not (FRONT / "node_modules").is_dir():
        pytest.skip("missing: Node.js, or the packages that tools/build_pages.py fetches")
    done = subprocess.run(
        ["node", "words.mjs"], cwd=FRONT, text=True, capture_output=True, timeout=120, check=True
    )
    return json.loads(done.stdout)


def keys(words, path: str = "") -> dict[str, str]:
    """Leaves by their paths."""
    if not isinstance(words, (dict, list)):
        return {path: str(words)}
    items = words.items() if isinstance(words, dict) else enumerate(words)
    return {k: v for name, one in items for k, v in keys(one, f"{path}.{name}").items()}


def test_both_languages_have_the_same_words(topics):
    assert {
        "frame",
        "curves.ts: curveTexts",
        "runs.ts: runTexts",
        "/compare-analysis/scalar",
    } <= topics.keys()
    for topic, languages in topics.items():
        english, chinese = keys(languages["en"]), keys(languages["zh"])
        assert english.keys() == chinese.keys(), topic
        for path in english:
            # A text is a text in both, a function takes as many values in both.
            is_function = re.fullmatch(r"\(\d\)", english[path])
            assert not is_function or english[path] == chinese[path], (topic, path)


#: Names and signs, which are the same in every language.
SAME = {
    "Mycelia Insight", "NaN", "+Inf", "-Inf", "–", "", "UMAP", "GPU", "SHA-256",
}  # fmt: skip


def test_chinese_words_are_chinese(topics):
    for topic, languages in topics.items():
        english = keys(languages["en"])
        for path, text in keys(languages["zh"]).items():
            is_same = text == english[path] and text not in SAME and not re.fullmatch(r"\(\d\)", text)
            assert not is_same, f"{topic}{path}: {text!r} is English"
            has_letters = re.search("[A-Za-z]{3}", text)
            assert text in SAME or not has_letters or re.search("[\u4e00-\u9fff]", text), (topic, path, text)
