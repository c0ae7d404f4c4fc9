"""Who looks at a running training is not alone: other tabs, ranks and trainings, browsers that freeze."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

pytest.importorskip("grpc", reason="the debugger's connection is gRPC")

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "service"), str(TESTS / "pages")]
from test_debugger_pages import Sessions, data, press, query, text  # noqa: E402
from test_online_debugger import BAD, ONLINE, desk_before_a_browser  # noqa: E402
from test_pages import by, until  # noqa: E402

desk = desk_before_a_browser
RANKS = '[data-testid="rank"] option'


@pytest.fixture
def tabs(desk) -> Iterator[tuple[str, str]]:
    """Two tabs of one browser."""
    driver = desk.driver
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    second = driver.current_window_handle
    yield first, second
    driver.switch_to.window(second)
    driver.close()
    driver.switch_to.window(first)


def test_two_tabs_see_one_training_and_what_is_done_in_the_other(desk, tabs):
    driver, (first, second) = desk.driver, tabs
    desk.train("--bad", str(BAD))
    for tab in tabs:
        driver.switch_to.window(tab)
        desk.open(f"{ONLINE}&tab=watchpoints")
        desk.until("waiting", 0)
    press(driver, "run")  # in the second
    for tab in tabs:
        driver.switch_to.window(tab)
        desk.until("waiting", 1)
        until(driver, lambda: data(driver, "step", "health") == ["good"])
    driver.switch_to.window(first)
    press(driver, "watch-new")
    until(driver, lambda: by(driver, "watch-all"))
    press(driver, "watch-save")  # tensor_overflow, on all nodes
    until(driver, lambda: len(by(driver, "watch")) == 1)
    driver.switch_to.window(second)
    until(driver, lambda: len(by(driver, "watch")) == 1)
    press(driver, "run-on")
    for tab in (second, first):
        driver.switch_to.window(tab)
        desk.until("waiting", BAD)
        until(driver, lambda: any("/Log-" in node for node in data(driver, "hit", "node")))
    press(driver, "step", step="2")  # the first looks back, and so does the other
    for tab in tabs:
        driver.switch_to.window(tab)
        desk.until("waiting", 2)
        until(driver, lambda: not by(driver, "hit"))
    press(driver, "watch-delete")
    driver.switch_to.window(first)
    until(driver, lambda: not by(driver, "watch"))
    driver.execute_script("window.confirm = () => true")
    press(driver, "terminate")
    for tab in (second, first):
        driver.switch_to.window(tab)
        desk.until("pending")
        until(driver, lambda: "The training has ended" in text(driver, "controls"))
    output, _ = desk.training.communicate()
    assert f"step {BAD + 1}" not in output


def test_ranks_are_looked_at_one_by_one_and_a_hit_of_one_stops_both(desk):
    driver = desk.driver
    for rank in ("0", "1"):
        desk.train("--steps", "100000", "--bad", "3" if rank == "1" else "0", RANK_ID=rank)
    desk.open(f"{ONLINE}&rank=1&tab=watchpoints")
    until(driver, lambda: [one.text for one in driver.find_elements(By.CSS_SELECTOR, RANKS)] == ["0", "1"])
    desk.until("waiting", 0)
    press(driver, "watch-new")
    until(driver, lambda: by(driver, "watch-all"))
    press(driver, "watch-save")
    until(driver, lambda: len(by(driver, "watch")) == 1)
    press(driver, "run-on")
    desk.until("waiting", 3)
    until(driver, lambda: any("/Log-" in node for node in data(driver, "hit", "node")))
    log = next(node for node in data(driver, "hit", "node") if "/Log-" in node)
    driver.find_element(By.CSS_SELECTOR, f'[data-testid="hit"][data-node="{log}"] button').click()
    until(driver, lambda: "nan" in text(driver, "tensor-list"))
    Select(by(driver, "rank")[0]).select_by_value("0")  # which has the node, and no hit
    until(driver, lambda: "rank" not in query(driver) and not by(driver, "hit"))
    until(driver, lambda: by(driver, "tensor-list") and "nan" not in text(driver, "tensor-list"))
    assert "0.69" in text(driver, "tensor-list")  # log(2)
    driver.execute_script("window.confirm = () => true")
    press(driver, "terminate")
    desk.until("pending")
    assert [training.wait() for training in desk.trainings] == [0, 0]


def graph_nodes(driver) -> str:
    return " ".join(data(driver, "graph-node", "name"))


def test_the_next_training_is_shown_and_not_the_one_before(desk):
    driver = desk.driver
    desk.train("--steps", "1")
    desk.open(f"{ONLINE}&open={json.dumps(['Default'])}")
    desk.until("waiting", 0)
    until(driver, lambda: "Default/network-Loss" in graph_nodes(driver))
    press(driver, "run-on")
    desk.until("pending")
    desk.train(script=TESTS / "debugger" / "adversaries.py")
    desk.until("waiting")
    until(driver, lambda: "Default/network-Telling" in graph_nodes(driver))
    assert "network-Loss" not in graph_nodes(driver)
    assert not any("conv1" in name for name in data(driver, "tree-node", "name"))


SHOWN_BY_AND_BY = """
import numpy as np
import mycelia as ms
from mycelia import debug, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
x = ops.relu(ms.Tensor(np.ones((2, 3), np.float32)))
debug.break_if(x, lambda x: True)
y = ops.exp(x)
debug.break_if(y, lambda y: True)
"""


def test_a_graph_of_eager_calls_grows_in_the_picture_too(desk):
    driver, script = desk.driver, desk.folder / "by_and_by.py"
    script.write_text(SHOWN_BY_AND_BY)
    desk.train(script=script)
    desk.open()
    desk.until("waiting")
    until(driver, lambda: "ReLU-op0" in graph_nodes(driver) and "Exp-op0" not in graph_nodes(driver))
    press(driver, "run")
    until(driver, lambda: "Exp-op0" in graph_nodes(driver))
    until(driver, lambda: any("Exp-op0" in name for name in data(driver, "tree-node", "name")))


def family(pid: int) -> list[int]:
    """A process and all that came of it."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, task.read_text().split())
    return found


@pytest.fixture
def other(tmp_path) -> Iterator[tuple[webdriver.Chrome, Callable[[int], None]]]:
    """A browser of its own, and what sends a signal to all of its processes."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", profile):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)

    def send(what: int) -> None:
        for pid in family(service.process.pid)[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, what)

    yield driver, send
    send(signal.SIGCONT)
    driver.quit()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes of a browser are found by /proc")
def test_a_browser_that_freezes_holds_up_neither_the_training_nor_other_pages(desk, other):
    driver, (frozen, send) = desk.driver, other
    desk.train("--steps", "5")
    frozen.get(f"http://127.0.0.1:{desk.command.port}/{ONLINE}")
    desk.open()
    desk.until("waiting", 0)
    until(frozen, lambda: data(frozen, "controls", "state") == ["waiting"])
    send(signal.SIGSTOP)
    with contextlib.ExitStack() as held:  # and clients that ask, and never read or say the rest
        place = b"/v1/mindinsight/debugger/sessions/0"
        post = b"POST %s/control HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{" % place
        poll = b"GET %s/poll-data?pos=%%s HTTP/1.1\r\nHost: x\r\n\r\n" % place
        pos = Sessions(desk.command).post("/0/retrieve", {"mode": "all"})["metadata"]["pos"].encode()
        for sent in [post, poll % pos] * 50:
            one = held.enter_context(socket.create_connection(("127.0.0.1", desk.command.port)))
            one.sendall(sent)
        press(driver, "run")
        desk.until("waiting", 1)
        until(driver, lambda: data(driver, "step", "health") == ["good"])
        press(driver, "run-on")
        output, _ = desk.training.communicate(timeout=120)
        assert "trained" in output
        desk.until("pending")
    send(signal.SIGCONT)
    until(frozen, lambda: "The training has ended" in text(frozen, "controls"))
