"""Dashboards of plugins: what is wrong with one is told, and it is left out."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from event_files import scalar, write  # noqa: E402

from mycelia_insight.dashboards import Dashboard, Insight, find  # noqa: E402
from mycelia_insight.runs.library import Library  # noqa: E402


@pytest.fixture
def files(tmp_path):
    (tmp_path / "page.js").write_text("export function mount() {}")
    return tmp_path


@pytest.mark.parametrize("name", ["", "A", "a/b", "..", "-a", "a" * 65, 3])
def test_names_are_parts_of_addresses(files, name):
    with pytest.raises(ValueError, match="name must be"):
        Dashboard(name, "Title", files)


def test_a_page_needs_its_module_and_a_title(files):
    with pytest.raises(ValueError, match="has no page.js"):
        Dashboard("a", "Title", files / "gone")
    with pytest.raises(TypeError, match="title of dashboard 'a'"):
        Dashboard("a", {}, files)
    assert Dashboard("a", {"zh": "标题"}, files).title_in("en") == "标题"
    assert Dashboard("a", {"en": "Title", "zh": "标题"}, files).title_in("zh") == "标题"


def test_what_is_no_dashboard_and_second_ones_are_left_out(files, monkeypatch, caplog):
    made = [
        Dashboard("a", "first", files),
        Dashboard("a", "second", files),
        "text",
        Dashboard("b", "b", files),
    ]
    monkeypatch.setattr("mycelia.plugins.dashboards", lambda app: made)
    with caplog.at_level(logging.WARNING):
        assert [one.title for one in find(None)] == ["first", "b"]
    assert caplog.text.count("is left out") == 2


def test_what_a_dashboard_may_ask(tmp_path):
    write(tmp_path / "runs" / "a", [scalar("loss", step, 1.0 / (step + 1)) for step in range(100)])
    library = Library(str(tmp_path / "runs"), str(tmp_path / "workspace"), 0)
    library.look()
    while library.read():
        pass
    app = Insight(library)
    assert app.runs() == ["./a"] and app.scalars("./a") == ["loss"]
    assert app.points("./a", "loss").steps.tolist() == list(range(100))
    assert len(app.points("./a", "loss", columns=5).steps) < 25
    for ask in (lambda: app.scalars("./b"), lambda: app.points("./a", "b")):
        with pytest.raises(KeyError, match="b"):
            ask()
