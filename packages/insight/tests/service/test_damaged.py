"""Damaged run folders against every endpoint that can be asked by GET: no error of the service, no hang."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from starlette.routing import Mount, Route

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "runs"), str(HERE)]
from asgi import Client  # noqa: E402
from event_files import (  # noqa: E402
    TENSORBOARD,
    double,
    event,
    field,
    framed,
    landscape,
    number,
    single,
    write,
)
from test_lineages import lineage_run  # noqa: E402
from test_media import WAVE, recorded, told  # noqa: E402
from test_records import bucket, image_message, png, tensorflow  # noqa: E402

from mycelia_insight.runs.library import Library  # noqa: E402
from mycelia_insight.service.app import make_app  # noqa: E402
from mycelia_insight.service.settings import Settings  # noqa: E402

FIXTURE = HERE.parent / "fixtures" / "summary" / "run1"
OWN, OLD = "/api/v1", "/v1/mindinsight"
ENDLESS = {f"{OWN}/stream"}
PATIENCE = 20  # seconds; the slowest answer to a whole run takes a tenth of one
ODD = [
    "",
    "-1",
    "nan",
    "1e999",
    "9" * 40,
    "\0",
    "é<",
    "[",
    "[:,:]",
    "[0]",
    "../..",
    "x" * 5000,
    "0",
    "true",
    "²",
    "%",
]


def make_mindspore(folder: Path) -> None:
    shutil.copytree(FIXTURE, folder)


def make_media(folder: Path) -> None:
    many = [recorded(4, "image", image_message(png(3 + step, 2), 3 + step, 2), step) for step in range(3)]
    many += [recorded(9, "histogram", bucket(step, 1, 5) + bucket(step + 1, 1, 9), step) for step in range(3)]
    table = number(1, 3) + number(1, 2) + number(2, 11) + field(3, struct.pack("<6f", *range(6)))
    many += [recorded(8, "tensor", table, step) for step in range(3)]
    many += [framed(event(s, 1.0 * s, field(5, field(1, field(1, "loss") + single(3, s))))) for s in range(9)]
    path = {1: (0.0, 0.0, 1.0), 4: (1.0, 1.0, 0.5)}
    many += [
        recorded(10, "landscape_[1, 4]", landscape([0, 1, 2], [0, 1], range(6), path), 0),
        recorded(10, "landscape_[4]", landscape([0, 1, 2], [0, 1], [0, 1, 2, 3, float("nan"), 5]), 0),
    ]
    write(folder, many)


def make_board(folder: Path) -> None:
    node = (
        field(1, "scope/node")
        + field(2, "Add")
        + field(3, "scope/other")
        + field(5, field(1, "T") + field(2, number(6, 1)))
    )
    graph = field(1, node) + field(1, field(1, "scope/other") + field(2, "Const"))
    old = (
        double(1, 0)
        + double(2, 1)
        + double(3, 4)
        + field(6, struct.pack("<2d", 0.5, 1))
        + field(7, struct.pack("<2d", 3, 1))
    )
    values = field(8, struct.pack("<6d", 0, 1, 3, 1, 2, 4)) + number(1, 2)
    many = [framed(event(0, 1.0, field(4, graph)))]
    many += [
        told("text", "text", tensorflow(7, [2, 1], field(8, "a"), field(8, "b")), step) for step in range(3)
    ]
    many += [told("wave", "audio", tensorflow(7, [1, 2], field(8, WAVE), field(8, "")), 3)]
    many += [told("photo", "images", tensorflow(7, [3], *(field(8, x) for x in (b"2", b"1", png()))), 3)]
    many += [
        told(
            "dist",
            "histograms",
            number(1, 2) + field(2, field(2, number(1, 2)) + field(2, number(1, 3))) + values[:50],
            3,
        )
    ]
    many += [
        told("scalar", "scalars", tensorflow(1, [], field(4, struct.pack("<f", 2))), step)
        for step in range(3)
    ]
    many += [framed(event(4, 1.0, field(5, field(1, field(1, "old") + field(5, old)))))]
    many += [
        framed(
            event(
                4,
                1.0,
                field(
                    5, field(1, field(1, "plain") + field(8, tensorflow(3, [2], number(7, 1), number(7, 2))))
                ),
            )
        )
    ]
    write(folder, many, first=TENSORBOARD)


def make_lineage(folder: Path) -> None:
    lineage_run(folder, 0.1, 0.3, "Adam", 0.7, note="x", size=1)


def make_projector(folder: Path) -> None:
    write(folder, [framed(event(1, 1.0, field(5, field(1, field(1, "loss") + single(3, 1.0)))))])
    (folder / "projector_config.pbtxt").write_text(
        'embeddings { tensor_name: "words" tensor_path: "tensors.tsv" metadata_path: "labels.tsv" }\n'
    )
    (folder / "tensors.tsv").write_text("".join(f"{i}\t{i * i}\t{-i}\n" for i in range(9)))
    (folder / "labels.tsv").write_text("".join(f"word {i}\n" for i in range(9)))


MAKERS = {f.__name__: f for f in (make_mindspore, make_media, make_board, make_lineage, make_projector)}


def frames(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at + 12 <= len(data):
        size = struct.unpack_from("<Q", data, at)[0]
        found.append(data[at + 12 : at + 12 + size])
        at += 16 + size
    return found


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bytes changed, cut off, doubled or added."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(found) + 1)
        kind = rng.randrange(5)
        if kind == 0 and found:
            found[at % len(found)] ^= 1 << rng.randrange(8)
        elif kind == 1 and found:
            found[at % len(found)] = rng.choice((0, 1, 127, 128, 255))
        elif kind == 2:
            del found[at : at + rng.choice((1, 4, 1 << 20))]
        elif kind == 3:
            found[at:at] = rng.randbytes(rng.choice((1, 9, 300)))
        else:
            found[at:at] = found[at : at + rng.choice((2, 40))]
    return bytes(found)


def damage(folder: Path, rng: random.Random) -> None:
    """A file as a whole, or messages of it in whole records, so that they are looked at."""
    for path in folder.iterdir():
        path.chmod(0o600)
        data = path.read_bytes()
        if "events" not in path.name or rng.random() < 0.15:
            data = damaged(data, rng)
        else:
            share = rng.choice((0.1, 0.5, 1))
            records = frames(data)
            data = b"".join(
                framed(damaged(one, rng) if i and rng.random() < share else one)
                for i, one in enumerate(records)
            )
        path.write_bytes(data)


class Service:
    """Asks, and tells what was asked when there is no answer, or one that blames the service."""

    def __init__(self, base: Path, workspace: Path):
        self.library = Library(str(base), str(workspace), 0)
        self.library.look()
        while self.library.read():
            pass
        self.library.loaded = True
        self.app = make_app(Settings(), self.library)
        self._client = Client(self.app)

    def get(self, path: str, params: list[tuple[str, str]] | None = None) -> tuple[int, bytes]:
        asked = f"{path}?{urlencode(params)}" if params else path
        got: list = []

        def ask() -> None:
            try:
                answer = self._client.get(path, params)
                got.append((answer.status_code, answer.body))
            except Exception as error:
                got.append(error)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert got, f"no answer within {PATIENCE} s: {asked[:300]}"
        if isinstance(got[0], Exception):
            raise AssertionError(f"the service failed: {asked[:300]}") from got[0]
        assert got[0][0] < 500, f"{got[0][0]}: {asked[:300]}"
        return got[0]


def routes_of(service: Service) -> Iterator[tuple[str, str]]:
    """(interface, path) of all that GET asks for, pages aside."""
    for mount in service.app.routes:
        if isinstance(mount, Mount) and mount.path in (OWN, OLD):
            for route in mount.routes:
                assert isinstance(route, Route)
                if "GET" in route.methods:
                    yield mount.path, mount.path + route.path


def values_for(service: Service) -> dict[str, list[str]]:
    """What there is to ask for, by the names of parameters."""
    tags = json.loads(service.get(f"{OWN}/runs/run/tags")[1]).get("kinds", {})
    status, body = service.get(f"{OWN}/runs/run/graphs/view")
    nodes = [one["name"] for one in json.loads(body)["nodes"]][:4] if status == 200 else []
    status, body = service.get(f"{OWN}/runs/run/graphs")
    rows = [row for kind in tags.values() for row in kind]
    names = sorted({row["tag"] for row in rows})
    vectors = json.loads(service.get(f"{OWN}/runs/run/embeddings")[1])["embeddings"]
    return {
        "run": ["run"], "train_id": ["./run"], "tag": names or ["none"], "kind": ["image", "audio"],
        "tensor": ["false", "true"], "step": ["", *sorted({str(row["first_step"]) for row in rows})[:2]],
        "graph": ["", *[one["id"] for one in json.loads(body)["graphs"]]], 
        "open": nodes or [""], "name": nodes or ["x"],
        "text": ["o"], "search": ["o"], "detail": ["stats", "data", "histogram"], "dims": ["", "[:, :]"],
        "embedding": [one["id"] for one in vectors] or ["tensor:x"], "metric": ["", "cosine"],
        "place": ["", "1", "100000"], "axis": ["", "scalar"], "x": ["", *names[:1]],
        "smoother": ["gaussian"], "smoothing": ["3"],
        "plugin_name": ["scalar"], "sample": ["", "1"], "target": [""], "query": ["", "loss < 1"],
    }  # fmt: skip


#: Parameters of the compatible interface, which does not say what it takes.
OF_OLD = ("train_id", "tag", "step", "detail", "dims", "plugin_name", "name", "search")


def requests(service: Service, most: int) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Every endpoint with what the run has; of more than `most` ways to ask one, so many by chance."""
    rng = random.Random(6)
    document = json.loads(service.get(f"{OWN}/openapi.json")[1])["paths"]
    known = values_for(service)
    for interface, path in routes_of(service):
        if path in ENDLESS:
            continue
        if interface == OWN:
            described = document[path.removeprefix(OWN).replace(":path}", "}")]["get"]["parameters"]
            taken = [p["name"] for p in described if p["in"] == "query" and p["name"] in known]
        else:
            taken = list(OF_OLD)
        path = path.replace("{run:path}", "run")
        ways = list(itertools.product(*([(name, value) for value in known[name]] for name in taken)))
        for way in rng.sample(ways, min(most, len(ways))):
            yield path, [(name, value) for name, value in way if value]


def opened(tmp_path: Path, make: Callable[[Path], object], rng: random.Random | None) -> Service:
    make(tmp_path / "runs" / "run")
    if rng is not None:
        damage(tmp_path / "runs" / "run", rng)
    return Service(tmp_path / "runs", tmp_path / "workspace")


@pytest.mark.parametrize("maker", MAKERS)
def test_whole_folders_are_answered(tmp_path, maker):
    service = opened(tmp_path, MAKERS[maker], None)
    right = {path for path, params in requests(service, 300) if service.get(path, params)[0] == 200}
    common = {
        f"{OWN}/openapi.json",
        f"{OWN}/runs",
        f"{OWN}/lineages",
        f"{OWN}/targets",
        f"{OWN}/runs/run/tags",
    }
    expected = {
        "make_mindspore": [
            "scalars",
            "image",
            "histograms",
            "tensor",
            "graphs/view",
            "graphs/node",
            "pipelines",
        ],
        "make_media": ["scalars", "image", "histograms", "tensor", "landscapes", "landscapes/view"],
        "make_board": ["texts", "audio", "image", "histograms", "tensor", "graphs/search", "graphs/node"],
        "make_lineage": ["scalars", "pipelines"],
        "make_projector": ["embeddings/labels", "embeddings/points", "embeddings/graph"],
    }[maker]
    assert right >= common | {f"{OWN}/runs/run/{name}" for name in expected}
    if maker == "make_mindspore":
        old = {path.removeprefix(OLD) for path in right if path.startswith(OLD)}
        all_old = {path.removeprefix(OLD) for interface, path in routes_of(service) if interface == OLD}
        others = {"/{path:path}", "/debugger/sessions{rest:path}"}  # what is not there; no run's
        assert old == all_old - others


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("seed", range(4))
def test_damaged_folders_fail_no_endpoint(tmp_path, maker, seed):
    service = opened(tmp_path, MAKERS[maker], random.Random(f"{maker} {seed}"))
    asked = [service.get(path, params)[0] for path, params in requests(service, 40)]
    assert len(asked) > 20


def test_odd_parameters_fail_no_endpoint(tmp_path):
    service = opened(tmp_path, make_mindspore, None)
    rng = random.Random(4)
    known = values_for(service)
    more = {"axis": ["time"], "from": ["0"], "to": ["5"], "smoothing": ["0.5"], "points": ["10"],
            "bins": ["3"], "steps": ["2"], "limit": ["3"], "offset": ["0"], "before": ["1"],
            "mode": ["normal"]}  # fmt: skip
    names = {**known, **more}
    for _, path in routes_of(service):
        if path in ENDLESS:
            continue
        for _ in range(40):
            run = rng.choice(["run", "run", "run", "@", "@@", "..", "no/run", "\0", "x" * 3000])
            chosen = rng.sample(sorted(names), rng.randint(1, 8))
            params = [(name, rng.choice(ODD if rng.random() < 0.4 else names[name])) for name in chosen]
            service.get(path.replace("{run:path}", quote(run)), params)


def test_no_other_host_is_asked_for_anything(tmp_path):
    told: list[tuple] = []
    listening = True

    def hook(event: str, arguments: tuple) -> None:
        if listening and event in (
            "socket.connect",
            "socket.sendto",
            "socket.getaddrinfo",
            "socket.gethostbyname",
        ):
            told.append((event, arguments))

    sys.addaudithook(hook)  # stays, and hears nothing any more after this test
    try:
        socket.getaddrinfo("127.0.0.1", 80)
        assert [event for event, _ in told] == ["socket.getaddrinfo"]
        told.clear()
        for maker in ("make_mindspore", "make_board", "make_lineage", "make_projector"):
            service = opened(tmp_path / maker, MAKERS[maker], None)
            asked = [service.get(path, params)[0] for path, params in requests(service, 20)]
            assert 200 in asked
    finally:
        listening = False
    assert told == []


def test_files_that_go_while_they_are_asked_for_fail_no_endpoint(tmp_path):
    service = opened(tmp_path, make_mindspore, None)
    asked = list(requests(service, 40))
    shutil.rmtree(tmp_path / "runs" / "run")
    begin = time.monotonic()
    refused = [service.get(path, params)[0] for path, params in asked]
    assert 422 in refused and time.monotonic() - begin < 60


@pytest.mark.parametrize("time", [float("nan"), float("inf"), 1e300, -1e300, 2.0**63])
def test_times_that_no_calendar_has_fail_no_endpoint(tmp_path, time):
    many = [
        framed(event(step, time, field(5, field(1, field(1, "loss") + single(3, 1.0))))) for step in (1, 2)
    ]
    service = opened(tmp_path, lambda folder: write(folder, many), None)
    asked = {path: service.get(path, params)[0] for path, params in requests(service, 40)}
    assert asked[f"{OWN}/runs"] == asked[f"{OLD}/datavisual/train-jobs"] == 200
