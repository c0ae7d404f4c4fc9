"""The debugger's pages over a dump, in a real browser."""

from __future__ import annotations

import io
import json
import sys
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "service"), str(TESTS / "pages")]
from dump_folders import BAD_STEP, STEPS, dump_training  # noqa: E402
from test_pages import by, until  # noqa: E402
from test_service import Command  # noqa: E402

DUMP = "./lenet/dump"
HOME = "#/offline-debugger?dir=" + quote(DUMP)
BACKBONE = "Default/network-WithLossCell/_backbone-Net"


class Sessions:
    """The debugger's sessions of a service."""

    def __init__(self, command: Command):
        self.command = command
        self.base = f"http://127.0.0.1:{command.port}/v1/mindinsight/debugger/sessions"

    def post(self, path: str, body: dict):
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def open(self) -> str:
        """A new session of the dump; the ones before are closed."""
        for number in self.command.get("/v1/mindinsight/debugger/sessions")["train_jobs"].values():
            self.post(f"/{number}/delete", {})
        return self.post("", {"session_type": "OFFLINE", "dump_dir": DUMP})


@pytest.fixture(scope="module")
def dumped(tmp_path_factory):
    base = tmp_path_factory.mktemp("debugged") / "runs"
    dump_training(base / DUMP, ranks=2)
    made = Command(tmp_path_factory.mktemp("debugger"))
    made.base = base
    assert made.start(base).returncode == 0
    yield made
    made("stop", "--port", str(made.port))


@pytest.fixture
def sessions(dumped):
    found = Sessions(dumped)
    found.number = found.open()
    return found


@pytest.fixture
def page(quiet, dumped, sessions):
    """Opens a page anew: `page("#/...")`."""

    def open_page(address: str = HOME):
        quiet.get("about:blank")
        quiet.get(f"http://127.0.0.1:{dumped.port}/{address}")
        return quiet

    return open_page


def graph_of(sessions) -> str:
    """The graph's name; its number is that of the process that wrote the dump."""
    return sessions.post(f"/{sessions.number}/retrieve", {"mode": "all"})["graph"]["graph_names"][0]


def at(sessions, name: str, **query: object) -> str:
    """The address of a node, without its graph."""
    more = "".join(f"&{key}={quote(str(value))}" for key, value in query.items())
    return f"{HOME}&node={quote(graph_of(sessions) + '/' + name)}{more}"


def texts(driver, name: str) -> list[str]:
    """Of all with a test id, at one moment."""
    found = f"[...document.querySelectorAll('[data-testid=\"{name}\"]')]"
    return driver.execute_script(f"return {found}.map((one) => one.textContent.trim().replace(/\\s+/g, ' '))")


def text(driver, name: str) -> str:
    """Of all of them together; "" while there are none."""
    return " ".join(texts(driver, name))


def data(driver, name: str, attribute: str) -> list[str]:
    found = f"[...document.querySelectorAll('[data-testid=\"{name}\"]')]"
    return driver.execute_script(f"return {found}.map((one) => one.dataset[arguments[0]])", attribute)


def query(driver) -> dict[str, str]:
    part = urlsplit(driver.current_url).fragment.partition("?")[2]
    return {name: values[0] for name, values in parse_qs(part).items()}


def current(driver) -> str | None:
    """The step that is looked at."""
    return driver.execute_script(
        "return document.querySelector('[data-testid=step][aria-current]')?.dataset.step"
    )


def table(driver, part: str) -> list:
    """Of the table of values: an expression of each `one` of its cells, or heads of rows."""
    rows = "[...document.querySelectorAll('[data-testid=tensor-table] tbody ' + arguments[0])]"
    return driver.execute_script(f"return {rows}.map((one) => one.dataset.odd ?? one.textContent)", part)


def press(driver, name: str, **data_: str) -> None:
    """Clicks the first one with a test id whose data are these, when it can be pressed."""
    more = "".join(f'[data-{key}="{value}"]' for key, value in data_.items())
    found = f"document.querySelector('[data-testid=\"{name}\"]{more}:not(:disabled)')"
    until(driver, lambda: driver.execute_script(f"const one = {found}; one?.click(); return one !== null"))


def test_dumps_are_listed_opened_and_closed(page, sessions):
    sessions.post(f"/{sessions.number}/delete", {})
    driver = page("#/debugger")
    until(driver, lambda: data(driver, "dump-row", "dump") == [DUMP])
    assert "not open" in text(driver, "dump-row") and "0, 1" in text(driver, "dump-row")
    assert driver.title == "Debugger-Mycelia Insight"
    press(driver, "dump-open")
    until(driver, lambda: by(driver, "step"))
    assert query(driver)["sessionId"].isdecimal() and driver.title.startswith(f"{DUMP}-Debugger")
    driver = page("#/debugger")
    until(driver, lambda: by(driver, "dump-close"))
    press(driver, "dump-close")
    until(driver, lambda: "not open" in text(driver, "dump-row"))
    by(driver, "dump-folder")[0].send_keys("./lenet/dump", Keys.ENTER)
    until(driver, lambda: by(driver, "step"))
    assert query(driver)["dir"] == DUMP


def test_a_folder_that_is_no_dump_is_told(page, chromium):
    driver = page("#/debugger")
    until(driver, lambda: by(driver, "dump-row"))
    by(driver, "dump-folder")[0].send_keys("./nothing", Keys.ENTER)
    until(driver, lambda: "holds no dump" in driver.find_element(By.CSS_SELECTOR, "[role=alert]").text)
    driver = page("#/offline-debugger?dir=" + quote("../.."))
    until(driver, lambda: "not below" in driver.find_element(By.CSS_SELECTOR, "[role=alert]").text)
    noted = [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"]
    assert all(one["source"] == "network" for one in noted)  # what the service refused


def test_steps_have_their_health_and_are_gone_through(page):
    driver = page()
    until(driver, lambda: data(driver, "step", "health") == ["good", "good", "bad", "bad"])
    assert len(by(driver, "step")) == STEPS
    assert current(driver) == "1" and not by(driver, "step-previous")[0].is_enabled()
    press(driver, "step-next")
    until(driver, lambda: current(driver) == "2")
    press(driver, "step", step=str(BAD_STEP))
    until(driver, lambda: current(driver) == "3" and query(driver)["step"] == "3")
    driver = page(f"{HOME}&step=4")  # the address says which step
    until(driver, lambda: by(driver, "step") and current(driver) == "4")
    box = by(driver, "step-input")[0]
    box.clear()
    box.send_keys("2", Keys.TAB)
    until(driver, lambda: current(driver) == "2")
    assert "4 steps were recorded" in driver.find_element(By.TAG_NAME, "main").text


def test_a_step_that_is_none_is_told_and_left(page, chromium):
    driver = page(f"{HOME}&step=99")
    until(driver, lambda: "from 1 to 4" in text(driver, "debugger-failure"))
    until(driver, lambda: "step" not in query(driver))
    noted = [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"]
    assert all(one["source"] == "network" for one in noted)


def test_another_page_moves_this_one(page, sessions):
    driver = page()
    until(driver, lambda: by(driver, "step"))
    sessions.post(f"/{sessions.number}/control", {"mode": "reset", "level": "step", "steps": 4})
    until(driver, lambda: query(driver).get("step") == "4")
    until(driver, lambda: current(driver) == "4")


def test_nodes_unfold_from_the_keyboard_and_are_sought(page, sessions):
    graph = graph_of(sessions)
    driver = page()
    until(driver, lambda: f"{graph}/Default" in data(driver, "tree-node", "name"))
    fold = f'[data-testid="tree-node"][data-name="{graph}/Default"] > div > [data-testid="tree-fold"]'
    driver.find_element(By.CSS_SELECTOR, fold).send_keys(Keys.ENTER)
    until(driver, lambda: f"{graph}/Default/network-WithLossCell" in data(driver, "tree-node", "name"))
    driver.find_element(By.CSS_SELECTOR, fold).send_keys(Keys.SPACE)
    until(driver, lambda: f"{graph}/Default/network-WithLossCell" not in data(driver, "tree-node", "name"))
    Select(by(driver, "node-category")[0]).select_by_value("weight")
    weights = [f"{graph}/{name}.{part}" for name in ("fc1", "fc2") for part in ("weight", "bias")]
    until(driver, lambda: set(weights) <= set(data(driver, "tree-node", "name")))
    by(driver, "node-search")[0].send_keys("FC2")
    until(driver, lambda: f"{graph}/fc1.weight" not in data(driver, "tree-node", "name"))
    assert query(driver)["category"] == "weight" and query(driver)["word"] == "FC2"
    driver = page(f"{HOME}&code={quote('self.fc2(self.relu')}")
    until(driver, lambda: any(name.endswith("ReLU-op0") for name in data(driver, "tree-node", "name")))
    driver = page(f"{HOME}&word=nowhere")
    until(driver, lambda: "No node is like that" in text(driver, "node-tree"))


def test_a_node_shows_its_tensors_lines_and_neighbours(page, sessions):
    driver = page()
    press(driver, "tree-fold")  # the graph, which is open: it folds
    driver = page(at(sessions, f"{BACKBONE}/relu-ReLU/ReLU-op0"))
    until(driver, lambda: data(driver, "tensor-row", "key") == ["input:0", "output:0"])
    assert "float32[5, 4]" in texts(driver, "tensor-row")[1]
    until(driver, lambda: by(driver, "node-stack"))
    assert "return self.fc2(self.relu(self.fc1(x)))" in text(driver, "node-stack")
    # The graph has opened the scopes around it, and marks it.
    until(driver, lambda: f"{BACKBONE}/relu-ReLU/ReLU-op0" in data(driver, "graph-node", "name"))
    assert driver.find_elements(By.CSS_SELECTOR, '.selected[data-testid="graph-node"]')
    assert not by(driver, "node-attributes")
    press(driver, "node-inputs")
    until(driver, lambda: query(driver)["node"].endswith("fc1-Dense/Dense-op0"))
    driver = page(at(sessions, "Default/optimizer-SGD/SGD-op0"))
    until(driver, lambda: "nesterov" in text(driver, "node-attributes"))


def test_a_click_in_the_graph_chooses_a_node(page, sessions):
    driver = page()
    until(driver, lambda: "Default" in data(driver, "graph-node", "name"))
    label = driver.find_element(By.CSS_SELECTOR, '[data-testid="graph-node"][data-name="Default"] text')
    label.click()
    until(driver, lambda: query(driver).get("node") == f"{graph_of(sessions)}/Default")
    label.find_element(By.XPATH, "..").send_keys(" ")
    until(driver, lambda: "Default/network-WithLossCell" in data(driver, "graph-node", "name"))
    by(driver, "graph-search")[0].send_keys("relu-op0")
    press(driver, "graph-match")
    until(driver, lambda: query(driver)["node"].endswith("ReLU-op0"))


def test_values_have_slices_and_marks(page, sessions):
    driver = page(at(sessions, f"{BACKBONE}/relu-ReLU/ReLU-op0", step=BAD_STEP, tensor="output:0"))
    until(driver, lambda: by(driver, "tensor-table"))
    until(driver, lambda: table(driver, "td")[:5] == ["NaN"] * 4 + ["0"])
    assert "NaN 4" in text(driver, "tensor-overall")
    box = by(driver, "tensor-dim")[0]
    box.clear()
    box.send_keys("1:3", Keys.TAB)
    until(driver, lambda: len(table(driver, "td")) == 8)
    assert query(driver)["dims"] == "[1:3, :]"
    assert table(driver, "th") == ["1", "2"]
    until(driver, lambda: data(driver, "tensor-history", "steps") == [str(STEPS)])
    address = driver.execute_async_script(
        "const done = arguments[0]; HTMLAnchorElement.prototype.click = function () { done(this.href) };"
        "document.querySelectorAll('[data-testid=tensor-download]')[1].click()"
    )
    with urllib.request.urlopen(address, timeout=60) as answer:
        assert np.isnan(np.load(io.BytesIO(answer.read()))[0]).all()


def test_steps_are_compared_with_a_tolerance(page, sessions):
    driver = page(at(sessions, "fc2.weight", step=2, tensor="output:0"))
    until(driver, lambda: by(driver, "tensor-other"))
    Select(by(driver, "tensor-other")[0]).select_by_value("1")
    until(driver, lambda: by(driver, "tensor-different"))
    assert "8 of 8 values differ" in text(driver, "tensor-different")
    assert len(driver.find_elements(By.CSS_SELECTOR, ".apart")) == 8
    now = text(driver, "tensor-table")
    Select(by(driver, "tensor-show")[0]).select_by_value("apart")
    until(driver, lambda: text(driver, "tensor-table") != now)
    slider = by(driver, "tensor-tolerance")[0]
    slider.send_keys(Keys.END)
    until(driver, lambda: "8 of 8" not in text(driver, "tensor-different"))
    assert query(driver)["tolerance"] == "1" and query(driver)["other"] == "1"


def test_recommended_watchpoints_are_offered_once(page):
    driver = page(f"{HOME}&tab=watchpoints&step={BAD_STEP}")
    press(driver, "recommend-yes")
    until(driver, lambda: len(by(driver, "watch")) == 6)
    until(driver, lambda: by(driver, "hit"))
    assert not by(driver, "recommendation") and not by(driver, "watch-outdated")
    driver.execute_script("window.confirm = () => true")
    press(driver, "watch-clear")
    until(driver, lambda: not by(driver, "watch") and not by(driver, "recommendation"))


def test_a_watchpoint_from_its_making_to_its_end(page, sessions):
    relu = f"{graph_of(sessions)}/{BACKBONE}/relu-ReLU/ReLU-op0"
    driver = page(f"{HOME}&category=activation")
    press(driver, "tick-found")
    until(driver, lambda: texts(driver, "tick-count") == ["1 name is ticked"])
    press(driver, "tab-watchpoints")
    press(driver, "watch-new")
    until(driver, lambda: by(driver, "watch-condition"))
    until(driver, lambda: len(Select(by(driver, "watch-condition")[0]).options) >= 17)
    Select(by(driver, "watch-condition")[0]).select_by_value("tensor_too_large")
    until(driver, lambda: len(by(driver, "watch-parameter")) == 4)
    press(driver, "watch-save")  # without a bound it is refused, and the dialog stays
    dialog = by(driver, "watch-dialog")[0]
    until(driver, lambda: "must be given" in dialog.text)
    driver.get_log("browser")
    driver.find_element(By.CSS_SELECTOR, '[data-name="max_gt"]').send_keys("0.001")
    assert by(driver, "watch-ticked")[0].is_selected()
    press(driver, "watch-save")
    until(driver, lambda: "Tensor too large" in text(driver, "watch"))
    assert "greatest value above 0.001" in text(driver, "watch") and by(driver, "watch-outdated")
    press(driver, "watch-recheck")
    until(driver, lambda: data(driver, "hit", "node") == [relu])
    assert not by(driver, "watch-outdated")
    driver.find_element(By.CSS_SELECTOR, '[data-testid="hit"] button').click()
    until(driver, lambda: by(driver, "hit-detail") and by(driver, "tensor-hit"))
    detail = text(driver, "hit-detail")
    assert "watchpoint_1: Tensor too large" in detail and "set to 0.001, is " in detail
    # In the step with the NaN the condition cannot be checked: the code says why.
    press(driver, "step", step=str(BAD_STEP))
    code = "return document.querySelector('[data-testid=hit-detail] [data-code]')?.dataset.code"
    until(driver, lambda: driver.execute_script(code) == "1")
    # Other parameters, other nodes.
    press(driver, "watch-edit")
    until(driver, lambda: by(driver, "watch-take"))
    box = driver.find_element(By.CSS_SELECTOR, '[data-name="max_gt"]')
    assert box.get_attribute("value") == "0.001"
    box.clear()
    box.send_keys("1e9")
    press(driver, "watch-save")
    until(driver, lambda: "1e+9" in text(driver, "watch"))
    press(driver, "watch-edit")
    press(driver, "watch-take")
    until(driver, lambda: "0 nodes are watched" in by(driver, "watch-dialog")[0].text)
    press(driver, "dialog-close")
    press(driver, "watch-delete")
    until(driver, lambda: not by(driver, "watch"))


def test_the_next_hit_is_gone_to(page, sessions):
    sessions.post(
        f"/{sessions.number}/create-watchpoint",
        {"condition": {"id": "tensor_overflow", "params": []}, "watch_nodes": [graph_of(sessions)]},
    )
    driver = page()
    until(driver, lambda: by(driver, "step-hit") and by(driver, "step-hit")[0].is_enabled())
    press(driver, "step-hit")
    until(driver, lambda: query(driver).get("step") == str(BAD_STEP) and by(driver, "hit"))


def test_why_is_this_nan(page, sessions):
    driver = page(at(sessions, f"{BACKBONE}/relu-ReLU/ReLU-op0", step=BAD_STEP))
    press(driver, "why-button")
    until(driver, lambda: len(by(driver, "why-step")) == 3)
    nodes = [name.rpartition("/")[2] for name in data(driver, "why-step", "node")]
    assert nodes == ["ReLU-op0", "Dense-op0", "inputs0"]
    assert "was there when the step began" in texts(driver, "why-step")[2]
    assert "dump_folders.py" in texts(driver, "why-step")[0]
    driver.find_element(By.CSS_SELECTOR, '[data-testid="why-step"]:last-child button').click()
    until(driver, lambda: query(driver)["node"].endswith("/inputs0") and by(driver, "tensor-table"))
    driver = page(f"{HOME}&step=1&why=step")
    until(driver, lambda: "All values of step 1 are finite" in text(driver, "why"))


def test_lines_of_code_lead_to_their_nodes(page):
    driver = page(f"{HOME}&tab=stacks&lines={quote('self.fc2(')}")
    press(driver, "line")
    until(driver, lambda: any(name.endswith("ReLU-op0") for name in data(driver, "tree-node", "name")))
    assert "dump_folders.py" in query(driver)["code"]


def test_ranks_are_chosen(page, sessions):
    driver = page(at(sessions, f"{BACKBONE}/relu-ReLU/ReLU-op0"))
    until(driver, lambda: by(driver, "rank"))
    Select(by(driver, "rank")[0]).select_by_value("1")
    until(driver, lambda: query(driver).get("rank") == "1")
    until(driver, lambda: len(by(driver, "tensor-row")) == 2)


def test_words_are_chinese_and_phones_have_room(page, sessions, chromium):
    address = at(sessions, f"{BACKBONE}/relu-ReLU/ReLU-op0", step=BAD_STEP, tensor="output:0", why="node")
    driver = page(address)
    driver.execute_script("localStorage.setItem('mycelia-insight.language', 'zh')")
    chromium.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        driver = page(address)
        until(driver, lambda: by(driver, "tensor-table") and len(by(driver, "why-step")) == 3)
        assert "为什么出现 NaN" in driver.find_element(By.TAG_NAME, "main").text
        width = "return document.documentElement.scrollWidth"
        assert driver.execute_script(width) <= 390
        driver = page("#/debugger")
        until(driver, lambda: by(driver, "dump-row"))
        assert driver.execute_script(width) <= 390
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_script("localStorage.clear()")


def test_every_control_has_a_name(page, sessions):
    for more in ({"tab": "watchpoints"}, {"tab": "stacks"}, {"tensor": "output:0", "other": 1, "step": 2}):
        driver = page(at(sessions, f"{BACKBONE}/relu-ReLU/ReLU-op0", **more))
        until(driver, lambda driver=driver: by(driver, "tensor-row"))
        unnamed = driver.execute_script(
            "return [...document.querySelectorAll('main button, main input, main select, main a')].filter("
            "(one) => !(one.textContent.trim() || one.ariaLabel || one.labels?.length)"
            ").map((one) => one.outerHTML)"
        )
        assert unnamed == []
