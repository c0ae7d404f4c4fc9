"""The names under which MindSpore Serving's scripts import the declarations."""

from __future__ import annotations

import subprocess
import sys

from mycelia_serving.servable import register


def test_both_styles_import_one_object():
    from mycelia_serving.server import register as of_server
    from mycelia_serving.worker import register as of_worker

    assert of_server is of_worker is register


def test_deep_names_are_the_same_objects():
    """In a process of its own: what was imported before must not help."""
    script = """
from mycelia_serving.server.register.model import Model, declare_model
from mycelia_serving.server.register.method import add_stage
from mycelia_serving.server.register import AscendDeviceInfo
from mycelia_serving.worker.register import declare_servable
import mycelia_serving.worker.register
from mycelia_serving.worker import register
from mycelia_serving import server

assert register is server.register is mycelia_serving.worker.register
assert register.Model is Model and register.add_stage is add_stage
assert register.model.declare_model is declare_model
assert register.AscendDeviceInfo is AscendDeviceInfo and register.declare_servable is declare_servable
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
