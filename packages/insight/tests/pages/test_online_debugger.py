"""The debugger's page over a running training: real processes, a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

pytest.importorskip("grpc", reason="the debugger's connection is gRPC")

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "service"), str(TESTS / "pages")]
from test_debugger_pages import data, press, query, text  # noqa: E402
from test_pages import by, until  # noqa: E402
from test_service import Command, free_port  # noqa: E402

from mycelia.debug.messages import debugger_pb2 as messages  # noqa: E402
from mycelia.debug.online.channel import CLIENT, PROTOCOL, SERVICE  # noqa: E402

ONLINE = "#/debugger?sessionId=0"
SCRIPT = TESTS / "debugger" / "debugged.py"
BAD = 4  # the step that makes a NaN


class Desk:
    """A service that takes trainings, and a browser that looks at them."""

    def __init__(self, folder: Path, driver):
        self.folder, self.command, self.driver = folder, Command(folder), driver
        self.listens = str(free_port())
        self.trainings: list[subprocess.Popen] = []
        base = folder / "runs"
        base.mkdir()
        started = self.command.start(base, "--enable-debugger", "1", "--debugger-port", self.listens)
        assert started.returncode == 0, started.stderr

    @property
    def training(self) -> subprocess.Popen:
        """The one that was started last."""
        return self.trainings[-1]

    def train(self, *options: str, script: Path = SCRIPT, **variables: str) -> None:
        known = {
            "ENABLE_MS_DEBUGGER": "1", "MS_DEBUGGER_HOST": "127.0.0.1", "MS_DEBUGGER_PORT": self.listens,
            "MS_DIAGNOSTIC_DATA_PATH": str(self.folder / "data"),
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, str(script), *options], env={**os.environ, **known, **variables},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.trainings.append(process)

    def open(self, address: str = ONLINE) -> None:
        self.driver.get("about:blank")
        self.driver.get(f"http://127.0.0.1:{self.command.port}/{address}")

    def state(self) -> tuple[str, str]:
        found = "document.querySelector('[data-testid=controls]')?.dataset"
        return tuple(self.driver.execute_script(f"return [{found}?.state ?? '', {found}?.step ?? '']"))

    def until(self, state: str, step: int | None = None) -> None:
        until(
            self.driver,
            lambda: self.state() == (state, str(step)) or (step is None and self.state()[0] == state),
        )

    def refuse(self, version: str) -> None:
        """A training that speaks another version of the protocol comes, and is refused."""
        import grpc

        with grpc.insecure_channel(f"127.0.0.1:{self.listens}") as channel:
            ask = channel.unary_unary(
                f"/{SERVICE}/SendMetadata",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=messages.EventReply.FromString,
            )
            headers = [(CLIENT, "another"), (PROTOCOL, version)]
            assert ask(messages.Metadata(), metadata=headers, timeout=60).status == messages.FAILED

    def close(self) -> None:
        for training in self.trainings:
            training.kill()
            training.communicate()
        self.command("stop", "--port", str(self.command.port))


@pytest.fixture(name="desk")
def desk_before_a_browser(tmp_path, chromium):
    chromium.get("about:blank")
    chromium.get_log("browser")
    found = Desk(tmp_path, chromium)
    yield found
    chromium.get("about:blank")
    found.close()
    # What is asked of a training at its end is refused, which the browser notes, too; all else is a fault.
    noted = [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"]
    assert [one for one in noted if one["source"] != "network"] == []


def test_a_training_is_stepped_watched_and_asked_why(desk):
    driver = desk.driver
    desk.open("#/debugger")
    press(driver, "online-open")
    desk.until("pending")
    assert "No training is connected yet" in text(driver, "controls")
    assert not any(
        button.is_enabled() for button in by(driver, "controls")[0].find_elements(By.TAG_NAME, "button")
    )
    desk.train("--bad", str(BAD))
    desk.until("waiting", 0)  # the page hears of it by itself
    until(driver, lambda: "graph_0" in " ".join(data(driver, "tree-node", "name")))
    press(driver, "run")
    desk.until("waiting", 1)
    until(driver, lambda: data(driver, "step", "health") == ["good"])
    press(driver, "run-node")  # within the second step
    until(driver, lambda: by(driver, "waits-at"))
    press(driver, "waits-at")
    until(driver, lambda: "node" in query(driver) and by(driver, "tensor-row"))
    press(driver, "run")
    until(driver, lambda: not by(driver, "waits-at") and desk.state() == ("waiting", "2"))
    driver.get(driver.current_url.partition("#")[0] + ONLINE + "&tab=watchpoints")
    press(driver, "watch-new")
    until(driver, lambda: by(driver, "watch-parameter") or by(driver, "watch-all"))
    press(driver, "watch-save")  # tensor_overflow, on all nodes
    until(driver, lambda: len(by(driver, "watch")) == 1)
    press(driver, "run-on")
    desk.until("waiting", BAD)  # the hit stops it
    until(driver, lambda: any("Log" in node for node in data(driver, "hit", "node")))
    log = next(node for node in data(driver, "hit", "node") if "/Log-" in node)
    press(driver, "hit", node=log)
    driver.find_element(By.CSS_SELECTOR, f'[data-testid="hit"][data-node="{log}"] button').click()
    press(driver, "why-button")
    until(driver, lambda: data(driver, "why-step", "node")[:1] == [log])
    assert "ops.log(scale)" in text(driver, "why-step") and "NaN" in text(driver, "why-step")
    press(driver, "step", step="3")  # a step that is kept
    until(driver, lambda: desk.state() == ("waiting", "3"))
    press(driver, "step", step=str(BAD))
    until(driver, lambda: desk.state() == ("waiting", str(BAD)))
    driver.execute_script("window.confirm = () => true")
    press(driver, "terminate")
    desk.until("pending")
    until(driver, lambda: "The training has ended" in text(driver, "controls"))
    output, _ = desk.training.communicate()
    assert f"step {BAD + 1}" not in output


def test_a_training_that_runs_is_paused(desk):
    driver = desk.driver
    desk.train("--steps", "100000")
    desk.open()
    desk.until("waiting", 0)
    box = by(driver, "run-steps")[0]
    box.send_keys(Keys.BACKSPACE, "90000", Keys.ENTER)
    desk.until("running")
    press(driver, "pause")
    desk.until("waiting")
    assert 1 <= int(desk.state()[1]) < 90000
    until(driver, lambda: 1 <= len(by(driver, "step")) <= 5)  # those that the training keeps
    assert "step" not in query(driver)


def test_a_training_that_is_killed_while_the_page_is_open_is_told_to_be_gone(desk):
    driver = desk.driver
    desk.train("--steps", "100000")
    desk.open()
    desk.until("waiting", 0)
    press(driver, "run")
    desk.until("waiting", 1)
    press(driver, "dump-step")
    until(driver, lambda: "Step 1 is in" in text(driver, "dump-written"))
    written = Path(text(driver, "dump-written").partition(" is in ")[2])
    assert written == desk.folder / "data" / "debugger_dump"
    assert list(written.glob("rank_0/*/*/0/ReLU.*.output.0.*.npy"))
    press(driver, "run-on")
    desk.until("running")
    desk.training.kill()
    desk.training.communicate()
    until(driver, lambda: desk.state()[0] == "pending")
    until(driver, lambda: "gone without a word" in text(driver, "phase-about"))
    controls = by(driver, "controls")[0].find_elements(By.TAG_NAME, "button")
    assert not any(button.is_enabled() for button in controls)
    desk.train("--steps", "1")
    desk.until("waiting", 0)
    assert not by(driver, "phase-about")


def test_a_weight_is_edited_and_an_operator_runs_again(desk):
    desk.train("--bad", "2", "--steps", "4")
    desk.open()
    desk.until("waiting", 0)
    desk.driver.find_element(By.CSS_SELECTOR, "[data-testid=run-steps]").send_keys(
        Keys.BACKSPACE, "2", Keys.ENTER
    )
    desk.until("waiting", 2)
    desk.open(f"{ONLINE}&node=graph_0/net.fc3.bias&tensor=output:0")
    until(desk.driver, lambda: by(desk.driver, "weight-panel"))
    desk.driver.find_element(By.CSS_SELECTOR, '[data-testid="weight-panel"] > summary').send_keys(Keys.ENTER)
    until(desk.driver, lambda: by(desk.driver, "weight-index")[0].is_displayed())
    by(desk.driver, "weight-index")[0].send_keys("[99]")
    by(desk.driver, "weight-value")[0].send_keys("42", Keys.ENTER)
    until(desk.driver, lambda: "outside" in text(desk.driver, "operator-failure"))
    by(desk.driver, "weight-index")[0].clear()
    by(desk.driver, "weight-index")[0].send_keys("[2]", Keys.ENTER)
    until(desk.driver, lambda: "next step" in text(desk.driver, "weight-told"))
    press(desk.driver, "why-step-button")
    until(desk.driver, lambda: data(desk.driver, "why-step", "born") == ["true"])
    desk.driver.execute_script("document.querySelector('[data-testid=why-step] button').click()")
    until(
        desk.driver,
        lambda: query(desk.driver)["node"].endswith("Log-op0") and by(desk.driver, "operator-panel"),
    )
    # The address keeps that tools are open, here those of an operator.
    until(desk.driver, lambda: by(desk.driver, "operator-panel")[0].get_attribute("open"))
    press(desk.driver, "edit-add")
    until(desk.driver, lambda: by(desk.driver, "edit-value"))
    by(desk.driver, "edit-value")[0].send_keys("1")
    press(desk.driver, "operator-run")
    until(desk.driver, lambda: data(desk.driver, "operator-output", "different") == ["1"])
    press(desk.driver, "run")
    desk.until("waiting", 3)
    desk.open(f"{ONLINE}&node=graph_0/net.fc3.bias&tensor=output:0")
    until(desk.driver, lambda: "42" in text(desk.driver, "tensor-table"))
    press(desk.driver, "compare-button")
    until(desk.driver, lambda: "outputs differ" in text(desk.driver, "compare-counts"))


def graph(driver) -> list[str]:
    """The one that is shown."""
    return driver.execute_script(
        "return [...document.querySelectorAll('[data-testid=graph-choice]')].map((one) => one.value)"
    )


def test_the_graph_of_the_step_that_is_looked_at_is_shown(desk):
    driver = desk.driver
    desk.train("--evaluate", "--steps", "3")
    desk.open()
    desk.until("waiting", 0)
    for step in (1, 2, 3):
        press(driver, "run")
        desk.until("waiting", step)
    until(driver, lambda: graph(driver) == ["graph_0"])
    press(driver, "step", step="2")  # that of the inference
    until(driver, lambda: graph(driver) == ["graph_1"])
    until(driver, lambda: not any("Gradients" in name for name in data(driver, "graph-node", "name")))
    press(driver, "step", step="1")
    until(driver, lambda: graph(driver) == ["graph_0"])
    until(driver, lambda: any("Gradients" in name for name in data(driver, "graph-node", "name")))
    # A node that is chosen shows its graph; the next step shows its own again, and the node stays chosen.
    desk.open(f"{ONLINE}&code=ops.log")
    until(driver, lambda: any(n.startswith("graph_1/") for n in data(driver, "tree-node", "name")))
    log = next(n for n in data(driver, "tree-node", "name") if n.startswith("graph_1/") and "Log-op" in n)
    row = f'[data-testid="tree-node"][data-name="{log}"] [data-testid="tree-name"]'
    driver.execute_script("document.querySelector(arguments[0]).click()", row)
    until(driver, lambda: graph(driver) == ["graph_1"] and query(driver)["node"] == log)
    press(driver, "step", step="3")
    until(driver, lambda: desk.state() == ("waiting", "3") and graph(driver) == ["graph_0"])
    assert query(driver)["node"] == log
    press(driver, "step", step="2")
    until(driver, lambda: graph(driver) == ["graph_1"] and by(driver, "tensor-row"))


def test_a_training_of_another_version_is_told_and_nothing_can_be_done_with_it(desk):
    driver = desk.driver
    desk.open()
    desk.until("pending")
    desk.refuse("9")
    desk.until("mismatch")  # the page hears of it by itself
    until(driver, lambda: "another version" in text(driver, "phase-about"))
    assert "version '9'" in text(driver, "reason") and "other version" in text(driver, "state")
    controls = by(driver, "controls")[0].find_elements(By.TAG_NAME, "button")
    assert not any(button.is_enabled() for button in controls)
    desk.train("--steps", "1")
    desk.until("waiting", 0)
    assert not by(driver, "phase-about") and not by(driver, "reason")


def test_recommended_watchpoints_have_other_numbers_before_they_are_made(desk):
    driver = desk.driver
    desk.train("--steps", "2")
    desk.open(f"{ONLINE}&tab=watchpoints")
    desk.until("waiting", 0)
    until(driver, lambda: "tensor_all_zero" in data(driver, "recommended", "id"))
    rows = {row.get_attribute("data-id"): row for row in by(driver, "recommended")}
    assert "activation_range:tanh" not in rows  # LeNet has none
    (bound,) = rows["tensor_all_zero"].find_elements(By.CSS_SELECTOR, "[data-testid=recommended-bound]")
    bound.clear()
    bound.send_keys("101", Keys.ENTER)
    until(driver, lambda: "from 0 to 100" in text(driver, "recommended-failure"))
    bound.clear()
    bound.send_keys("40")
    for row in rows.keys() - {"tensor_all_zero", "tensor_overflow"}:
        rows[row].find_element(By.CSS_SELECTOR, "[data-testid=recommended-wanted]").click()
    press(driver, "recommend-yes")
    until(driver, lambda: len(by(driver, "watch")) == 2)
    assert "at least 40" in text(driver, "watch")
    # Nothing has run that could be checked, and what runs is checked as it does.
    assert not by(driver, "watch-outdated") and not by(driver, "debugger-failure")
    press(driver, "run")
    desk.until("waiting", 1)
    until(driver, lambda: any("/ReLU-" in node for node in data(driver, "hit", "node")))
    assert not by(driver, "watch-outdated")
