"""Names with scripts in them, in every place that a page can show, on every page that there is."""

from __future__ import annotations

import json
import re
import struct
import sys
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), *(str(TESTS / name) for name in ("records", "runs", "service", "pages"))]
from event_files import (  # noqa: E402
    TENSORBOARD,
    event,
    field,
    framed,
    landscape,
    number,
    scalar,
    write,
)
from test_graph import node  # noqa: E402
from test_media import WAVE, recorded, told  # noqa: E402
from test_pages import by, until  # noqa: E402
from test_records import bucket, image_message, png, tensorflow  # noqa: E402
from test_service import Command  # noqa: E402

from mycelia.debug.dump.files import op_name  # noqa: E402
from mycelia.train.summary.lineage import (  # noqa: E402
    DatasetGraph,
    EvaluationLineage,
    TrainLineage,
    UserDefinedInfo,
)
from mycelia_insight.runs.alerts import Alerts  # noqa: E402

FRONT = TESTS.parent / "front" / "src"


def evil(place: str) -> str:
    """What must be shown as it is written, in place of a name."""
    return f"\"'><img src=x onerror=window.taken=1><b onclick=window.taken=1>{place}"


RUN = "./" + evil("run")
ODD = np.array([np.nan, np.inf], np.float32)

#: What a page must show, at least, and what its address needs for that; pages that are not here show the run.
SHOWN = {
    "/dashboard": [],
    "/summary-manage": ["base", "run"],
    "/model-traceback": ["optimizer", "network", "metric", "user", "value", "run"],
    "/data-traceback": ["operator", "setting", "path"],
    "/train-manage/scalar": ["scalar", "run", "file"],
    "/compare-analysis/scalar": ["scalar", "run"],
    "/train-manage/training-dashboard": ["scalar", "histogram", "image", "tensor", "node", "operator"],
    "/train-manage/histogram": ["histogram"],
    "/train-manage/image": ["image"],
    "/train-manage/tensor": ["tensor"],
    "/train-manage/embedding": ["tensor", "column", "label", "vectors"],
    "/train-manage/text": ["text", "words", "cell"],
    "/train-manage/audio": ["audio"],
    "/train-manage/system": ["machine", "run", "file"],
    "/train-manage/loss-analysis": ["landscape", "run", "unit", "decomposition"],
    "/compare-analysis/loss": ["landscape", "run", "unit", "decomposition"],
    "/train-manage/graph": ["node", "graph"],
    "/train-manage/data-map": ["operator"],
    "/alerts": ["scalar", "run"],
    "/debugger": ["dump"],
    "/offline-debugger": ["dump", "operator", "code", "source"],
}
DUMP = "./" + evil("dump")
MORE = {
    "/offline-debugger": "&".join(
        f"{name}={quote(value)}" for name, value in {
            "dir": DUMP, "node": f"graph_0/Default/{evil('operator')}", "tensor": "output:0", "why": "node",
        }.items()
    ),
    "/model-traceback": "columns=" + quote(
        json.dumps(["optimizer", "network", f"metric/{evil('metric')}", f"user_defined/{evil('user')}"])
    )
}  # fmt: skip


def table() -> dict[str, bool]:
    """Whether it is a page of a run, of each page in the table of pages."""
    runs, boards = (FRONT / "pages" / "index.ts").read_text().split("boards: ")
    found = {path: True for path in re.findall(r'path: "(/[^"]+)"', runs)}
    return {**found, **{path: False for path in re.findall(r'path: "(/[^"]+)"', boards)}}


def names_of_address() -> set[str]:
    """What pages read from the address."""
    found: set[str] = set()
    for path in [*FRONT.rglob("*.svelte"), *FRONT.rglob("*.ts")]:
        found |= set(
            re.findall(r'(?:query\.(?:get|has)|choice|listed|stored(?:<[^(]+>)?)\("(\w+)"', path.read_text())
        )
    return found


def hostile_runs(base: Path) -> None:
    run = base / evil("run")
    table_ = number(1, 2) + number(1, 3) + number(2, 11) + field(3, struct.pack("<6f", *range(6)))
    many = [scalar(evil("scalar"), step, 1.0 / (step + 1), 1.7e9 + step) for step in range(5)]
    many.append(scalar(f"system/{evil('machine')}", 1, 2.0))
    for step in range(3):
        many.append(recorded(4, evil("image"), image_message(png(4, 3), 4, 3), step))
        many.append(recorded(9, evil("histogram"), bucket(step, 1, 5) + bucket(step + 1, 1, 9), step))
        many.append(recorded(8, evil("tensor"), table_, step))
    way = {2: (0.0, 0.0, 1.0), 3: (0.5, 0.5, 0.5)}
    about = {"unit": evil("unit"), "decomposition": evil("decomposition")}
    hill = landscape([0, 1, 2], [0, 1], [3, 2, 1, 4, 5, float("inf")], way, **about)
    many.append(recorded(10, evil("landscape"), hill, 3))
    graph = (
        node("1", evil("type"), evil("node"), "x")
        + node("2", "Add", evil("node"), "1")
        + field(2, evil("graph"))
    )
    many.append(framed(event(0, 1.7e9, field(4, graph))))
    written = write(run, many)
    bad = bytearray(scalar("x", 1, 1.0))
    bad[14] ^= 255
    written.rename(run / f"{evil('file')}.events.summary.1700000000.0.host_MS").open("ab").write(bad)
    (run / f"{evil('graph')}.pb").write_bytes(graph)
    (run / "metadata.tsv").write_text(f"{evil('column')}\tb\n{evil('label')}\tc\nx\ty\n")
    config = f'embeddings {{ tensor_name: "{evil("vectors")}" tensor_path: "x.tsv" }}'.replace(
        "\"'>", "\\\"'>"
    )
    (run / "projector_config.pbtxt").write_text(config)
    board = [
        told(evil("text"), "text", tensorflow(7, [], field(8, evil("words"))), 1),
        told(evil("text"), "text", tensorflow(7, [1, 2], field(8, evil("cell")), field(8, "| a | b |")), 2),
        told(evil("audio"), "audio", tensorflow(7, [1, 2], field(8, WAVE), field(8, evil("label"))), 3),
        told(evil("photo"), "images", tensorflow(7, [3], *(field(8, x) for x in (b"4", b"3", png(4, 3)))), 3),
    ]
    (run / "events.out.tfevents.1700000001.host").write_bytes(TENSORBOARD + b"".join(board))
    train = TrainLineage(
        optimizer=evil("optimizer"), learning_rate=0.1, loss_function=evil("loss"), epoch=2, batch_size=32,
        network=evil("network"), loss=0.5, dataset_path=evil("path"), dataset_size=10,
    )  # fmt: skip
    source = {"op_type": evil("source"), "dataset_dir": evil("path"), "children": []}
    messages = {
        9: DatasetGraph({"op_type": evil("operator"), evil("setting"): evil("value"), "children": [source]}),
        10: UserDefinedInfo({evil("user"): evil("value")}), 6: train,
        7: EvaluationLineage(json.dumps({evil("metric"): 0.5}), evil("test"), 5),
    }  # fmt: skip
    (run / "events.out.events.summary.1700000000.0.host_lineage").write_bytes(
        b"".join(framed(event(0, 1.7e9, field(n, m.SerializeToString()))) for n, m in messages.items())
    )


def hostile_dump(folder: Path) -> None:
    """A dump of one step whose operator, type of weights, line and file have such names."""
    step = folder / "rank_0" / "net" / "0" / "0"
    step.mkdir(parents=True)
    name = f"Default/{evil('operator')}"
    for io in ("input", "output"):
        np.save(step / f"Add.{op_name(name)}.0.0.1700000000000000.{io}.0.DefaultFormat.Float32.npy", ODD)
    (folder / "rank_0" / ".dump_metadata").mkdir()
    graphs = folder / "rank_0" / "graphs"
    graphs.mkdir()
    (graphs / "ms_output_trace_code_graph_0.ir").write_text(
        f"%para1_{evil('weight')} : <Tensor[Float32], (2)>\n"
        f"  %0(x) = Add(%para1_{evil('weight')}, %para1_{evil('weight')}) {{}}\n"
        f"      # Fullname with scope: ({name})\n"
        f"      # In file {evil('source')}:3, 4~8/        {evil('code')}/\n"
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    base = folder / evil("base")
    hostile_runs(base)
    hostile_dump(base / evil("dump"))
    made = Command(folder)
    Alerts(str(folder / "workspace"), str(base)).add(f"{evil('scalar')} < 9")
    assert made.start(base).returncode == 0
    kinds = (
        "scalar",
        "image",
        "graph",
        "landscape",
        "histogram",
        "tensor",
        "text",
        "audio",
        "train_lineage",
        "dataset_graph",
    )

    def all_there():
        rows = made.get("/api/v1/runs")["runs"]  # a dump beside it makes its folder a run
        return any(set(kinds) <= row["tags"].keys() for row in rows)

    until(None, all_there)
    yield made
    made("stop", "--port", str(made.port))


@pytest.fixture(scope="module")
def watched(chromium):
    """The browser notes what the Content-Security-Policy refuses, before a page's own scripts run."""
    source = (
        "window.refused = [];"
        "addEventListener('securitypolicyviolation', (e) => refused.push(e.sourceFile + e.blockedURI));"
    )
    added = chromium.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    yield chromium
    chromium.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


SEEN = """
const parts = [document.title, document.body.textContent];
for (const one of document.querySelectorAll('*')) {
  for (const attribute of one.attributes) parts.push(attribute.value);
  if (typeof one.value === 'string') parts.push(one.value);
}
return parts.join('\\n');
"""
MADE = """
return [...document.querySelectorAll('*')].filter((one) =>
  one.localName === 'b' || one.getAttribute('src') === 'x'
  || [...one.attributes].some((a) => a.name.startsWith('on'))
  || (one.localName === 'script' && !one.src) || /^javascript:/i.test(one.getAttribute('href') ?? '')
).map((one) => one.outerHTML);
"""


def opened(driver, service, address: str) -> None:
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get("about:blank")
    driver.get(f"http://127.0.0.1:{service.port}/{address}")
    until(
        driver, lambda: driver.execute_script("return document.querySelector('main')?.childElementCount > 0")
    )


def gone_to(driver, address: str) -> None:
    """Another page of the same document, as a link opens it: nothing of the one before is left."""
    driver.execute_script(
        "for (const one of document.querySelector('main').children) one.dataset.before = 1;"
        "location.hash = arguments[0];",
        address,
    )
    drawn = "const main = document.querySelector('main');"
    drawn += "return main.childElementCount > 0 && !main.querySelector('[data-before]');"
    until(driver, lambda: driver.execute_script(drawn))


def settled(driver) -> None:
    """Waits until the page is what it was a moment ago."""
    before: list[str] = []

    def same() -> bool:
        before.append(driver.execute_script("return document.body.innerHTML"))
        return len(before) > 2 and len(set(before[-3:])) == 1

    until(driver, same)


def asked_elsewhere(driver) -> list[str]:
    """Addresses of other hosts that the page asked for since the last time."""
    own = driver.current_url.partition("#")[0]
    noted = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in noted if m["method"] == "Network.requestWillBeSent"]
    asked += [m["params"]["url"] for m in noted if m["method"] == "Network.webSocketCreated"]
    return [address for address in asked if not address.startswith((own, "data:", "blob:"))]


def unharmed(driver) -> None:
    assert asked_elsewhere(driver) == []
    assert driver.execute_script("return window.taken ?? null") is None
    assert driver.execute_script("return refused") == []
    assert driver.execute_script(MADE) == []
    # What the service refuses is noted by the browser, too; all else is a fault.
    noted = [one for one in driver.get_log("browser") if one["level"] == "SEVERE"]
    assert [one for one in noted if one["source"] != "network"] == []


def pressed(driver) -> None:
    """Unfolds and presses what is there, except what leaves the page."""
    driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    count = driver.execute_script("return document.querySelectorAll('main button').length")
    for i in range(min(count, 40)):
        driver.execute_script(
            "const one = document.querySelectorAll('main button')[arguments[0]];"
            "const left = /download|graph-fullscreen|run-archive/;"
            "if (one && !one.disabled && !left.test(one.dataset.testid)) one.click();",
            i,
        )
        assert driver.execute_script(MADE) == []


@pytest.mark.parametrize("path", table())
def test_names_are_text_on_every_page(watched, hostile, path):
    opened(watched, hostile, f"#{path}?train_id={quote(RUN)}&{MORE.get(path, '')}")
    wanted = [evil(place) for place in SHOWN.get(path, ["run"])]
    until(watched, lambda: all(text in seen for seen in [watched.execute_script(SEEN)] for text in wanted))
    unharmed(watched)
    pressed(watched)
    unharmed(watched)


def test_a_node_and_its_parts_are_text(watched, hostile):
    name = f"{evil('node')}/{evil('type')}-op1"
    opened(watched, hostile, f"#/train-manage/graph?train_id={quote(RUN)}&node={quote(name)}")
    until(
        watched,
        lambda: by(watched, "graph-node-info") and evil("type") in by(watched, "graph-node-info")[0].text,
    )
    unharmed(watched)


TYPED = evil("typed")
CHOOSING = {"query", "filter", "hide", "columns"}  # with these there may be nothing left to show
ASKED = [
    (TYPED, set()),
    (TYPED, CHOOSING),
    (json.dumps([TYPED]), set()),
    (json.dumps({TYPED: TYPED}), set()),
    ("-1", CHOOSING),
]


@pytest.mark.parametrize("path", table())
def test_what_an_address_says_is_text(watched, hostile, path):
    between = "#/alerts" if path != "/alerts" else "#/model-traceback"
    opened(watched, hostile, between)
    for text, without in ASKED:
        names = names_of_address() - {"train_id", "id"} - without
        query = "&".join(f"{name}={quote(text)}" for name in sorted(names))
        gone_to(watched, f"#{path}?train_id={quote(RUN)}&{query}")
        settled(watched)
        unharmed(watched)
        gone_to(watched, between)
