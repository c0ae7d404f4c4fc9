"""Pictures of every page of Mycelia Insight, light and dark, into docs/img.

`python tools/insight_screenshots.py [NAME ...]`: makes the gallery of examples/insight_tour.py if RUNS (the
variable) names no other, serves it, and looks at it with a headless Chromium; with names only these pages.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from PIL import Image

from mycelia_insight.runs.alerts import Alerts

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "img"
SIZE = 1180, 760
COLOURS = 128  # of a picture: pages have few, curves and reliefs look the same


def of(run: str, page: str, **query: object) -> str:
    more = "".join(
        f"&{name}={quote(one if isinstance(one, str) else json.dumps(one))}" for name, one in query.items()
    )
    return f"#/train-manage/{page}?train_id={quote(run)}{more}"


def debugger(**query: str) -> str:
    shown = {"dir": "./debugged/dump", "step": "2", **query}
    return "#/offline-debugger?" + "&".join(f"{name}={quote(one)}" for name, one in shown.items())


ADAM = "./lenet/adam-0.001-32"
NET = "Default/network-WithLossCell"
#: Name of the picture -> address of the page.
PAGES = {
    "runs": "#/summary-manage",
    "model-lineage": "#/model-traceback",
    "contour": "#/model-traceback?query=learning_rate+<+1&plot=contour&contoury=batch_size"
    "&log=%5B%22learning_rate%22%5D&columns=%5B%22metric/accuracy%22,%22learning_rate%22,%22batch_size%22%5D",
    "files": "#/model-traceback?query=run+==+'lenet/tuned'",
    "dataset-lineage": "#/data-traceback",
    "comparison": "#/compare-analysis/scalar",
    "alerts": "#/alerts",
    "dashboard": of(ADAM, "training-dashboard"),
    "scalars": of(ADAM, "scalar", smoothing="0.6"),
    "not-finite": of("./lenet/diverges", "scalar"),
    "distributions": of(ADAM, "histogram"),
    "images": of(ADAM, "image"),
    "boxes": of("./media", "image", hide=["digits"], size="45"),
    "tensors": of("./media", "tensor"),
    "embeddings": of("./media", "embedding", colour="digit"),
    "texts": of("./media", "text"),
    "sounds": of("./media", "audio"),
    "graph": of(ADAM, "graph", mode="optimize", open=["Default", NET, f"{NET}/_backbone-LeNet5"]),
    "graph-memory": of(
        ADAM, "graph", colour="memory", mode="optimize", open=["Default", NET, f"{NET}/_backbone-LeNet5"]
    ),
    "graph-time": of(
        ADAM, "graph", colour="time", mode="optimize", open=["Default", NET, f"{NET}/_backbone-LeNet5"]
    ),
    "graph-nan": of(
        "./lenet/diverges",
        "graph",
        colour="nan",
        mode="optimize",
        open=["Default", NET, f"{NET}/_backbone-LeNet5"],
    ),
    "graphs": of(
        ADAM,
        "graph",
        **{"with": "./lenet/momentum-0.003-32"},
        node="Default/optimizer-Momentum",
        open=["Default"],
    ),
    "operator-precision": of("./mixed precision", "operatorPrecision"),
    "stages": of("./compile stages", "graph"),
    "pipeline": of(ADAM, "data-map"),
    "landscape": of("./landscape", "loss-analysis", view="surface"),
    "landscapes": "#/compare-analysis/loss?view=relief",
    "machine": of(ADAM, "system"),
    "debugger": debugger(tab="watchpoints", why="step"),
    "debugger-values": debugger(
        node=f"graph_0/{NET}/_backbone-LeNet5/fc2-Dense/Dense-op0", tensor="output:0", why="node"
    ),
    "debugger-operator": debugger(node=f"graph_0/{NET}/_backbone-LeNet5/fc3-Dense/Dense-op0", tool="1"),
    "debugger-comparison": debugger(compare="1"),
}
#: Rules and runs of the page of alerts.
ALERTS = [("*loss* not finite", ""), ("loss/auto < 0.4", "lenet/"), ("loss/auto > 100", "")]
#: What is pressed on a page if it is there, and what is brought to its top.
PRESSED = {"debugger": "recommend-yes", "debugger-operator": "operator-run"}
TOP = {
    "contour": "plots",
    "files": "files",
    "debugger-values": "chosen-node",
    "debugger-operator": "chosen-node",
}
SEEN = "return document.body.innerText + document.querySelectorAll('*').length"


def main(names: list[str]) -> None:
    unknown = set(names) - set(PAGES)
    if unknown:
        sys.exit(f"insight_screenshots: no pages called {sorted(unknown)}; there are {', '.join(PAGES)}")
    with tempfile.TemporaryDirectory() as folder:
        runs = os.environ.get("RUNS") or made(Path(folder))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        command = [sys.executable, "-c", "from mycelia_insight.cli import app; app()"]
        start = [
            "start",
            "--port",
            port,
            "--workspace",
            f"{folder}/workspace",
            "--summary-base-dir",
            str(runs),
        ]
        kept = Alerts(f"{folder}/workspace", str(runs))
        for rule, where in ALERTS:
            kept.add(rule, where)
        subprocess.run([*command, *start], check=True, stdout=subprocess.DEVNULL)
        try:
            look(f"http://127.0.0.1:{port}/", names or list(PAGES))
        finally:
            subprocess.run([*command, "stop", "--port", port], check=True, stdout=subprocess.DEVNULL)


def made(folder: Path) -> Path:
    tour = ROOT / "examples" / "insight_tour.py"
    subprocess.run([sys.executable, str(tour), "--output", str(folder / "tour")], check=True)
    return folder / "tour" / "runs"


def look(address: str, names: list[str]) -> None:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--lang=en-GB",
                     f"--window-size={SIZE[0]},{SIZE[1] + 140}"):  # fmt: skip
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        for theme in ("light", "dark"):
            driver.get(address)
            for key, value in (("theme", theme), ("introduced.graph", "yes")):
                driver.execute_script(f"localStorage.setItem('mycelia-insight.{key}', arguments[0])", value)
            for name in names:
                driver.get("about:blank")
                driver.get(address + PAGES[name])
                settle(driver)
                if name in PRESSED or name in TOP:
                    press = "document.querySelector('[data-testid=' + arguments[0] + ']')?."
                    driver.execute_script(f"{press}click()", PRESSED.get(name, "nothing"))
                    settle(driver)
                    driver.execute_script(f"{press}scrollIntoView()", TOP.get(name, "nothing"))
                keep(driver.get_screenshot_as_png(), OUT / f"insight-{name}{'-dark' * (theme == 'dark')}.png")
    finally:
        driver.quit()


def settle(driver) -> None:
    """Waits until the page is what it was two seconds ago, at most half a minute."""
    before: list[str] = []
    end = time.monotonic() + 30
    while time.monotonic() < end:
        before.append(driver.execute_script(SEEN))
        if len(before) > 4 and len(set(before[-4:])) == 1 and "Reading…" not in before[-1]:
            return
        time.sleep(0.5)


def keep(png: bytes, path: Path) -> None:
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture = picture.crop((0, 0, min(SIZE[0], picture.width), min(SIZE[1], picture.height)))
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1024:.0f} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
