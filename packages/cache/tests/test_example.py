"""The example that trains with and without the cache, on few digits."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mycelia_cache import commands

REAL_SERVERS = True
EXAMPLE = Path(__file__).parents[3] / "examples" / "cached_training.py"


@pytest.mark.parametrize("running", [False, True])
def test_both_trainings_end_with_the_same_network(make_server, tmp_path, running):
    pytest.importorskip("mlxtend")
    server = make_server()
    if not running:
        commands.stop("127.0.0.1", server.port)  # its port is free now, and nobody else's
    command = [sys.executable, str(EXAMPLE), "--epochs", "2", "--digits", "96", "--port", str(server.port)]
    done = subprocess.run([*command, "--output", str(tmp_path)], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the cache holds 96 rows" in done.stdout
    assert re.search(r"training after the first epoch is [\d.]+ times as fast", done.stdout)
    assert "the two networks are the same to the last bit" in done.stdout
    if running:
        info = commands.overview("127.0.0.1", server.port)
        assert info.pid == server.pid and not info.sessions, "the server goes on, the session is gone"
        return
    with pytest.raises(commands.Failed):
        commands.overview("127.0.0.1", server.port)
