"""Measures the networks of the benches with the profiler and draws the pictures of docs/performance.md.

gen_performance_docs.py            draw from docs/performance/measured.json
gen_performance_docs.py --measure  measure first: minutes, on one core of a machine that is otherwise idle
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "performance"
DATA = FOLDER / "measured.json"
PLANNED = "ResNet-18 224 b4"  # the training step whose memory is drawn
GROUPS = {  # name: (color, words that the ops of the group begin with)
    "convolution": ("#2b6cb0", "conv"),
    "product": ("#2f855a", "mat_mul batch_matmul dense linear"),
    "recurrent layer": ("#276749", "lstm gru rnn"),
    "attention": ("#b83280", "attention"),
    "normalization": ("#d69e2e", "batch_norm layer_norm group_norm rms_norm"),
    "softmax and loss": ("#975a16", "softmax log_softmax sparse_softmax cross place_class pick_class"),
    "pooling": ("#718096", "max_pool avg_pool adaptive"),
    "optimizer": ("#c53030", "adam apply_ sgd"),
    "elementwise": ("#dd6b20", ""),  # and reductions: whatever is in no other group
    "moves": (
        "#4a5568",
        "transpose gather embedding concat split strided broadcast reshape stack cast scatter",
    ),
}


def group_of(op: str) -> str:
    for name, (_, words) in GROUPS.items():
        if any(op.startswith(word) for word in words.split()):
            return name
    return "elementwise"


# ---- measuring ---------------------------------------------------------------------------------------------


def measure_network(name: str) -> dict:
    """One call of a network: its CPU time, its ops, and the memory plan of its largest program."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import models
    from models_data import inference_input, training_batch

    from mycelia.engine.compile import executable
    from mycelia.profiler import Profiler, peaks

    models.ms.set_context(runtime_num_threads=1)
    if name in models.INFERENCE:
        net, x = models.INFERENCE[name]().set_train(False), models.ms.Tensor(inference_input(name))
        compiled = models.ms.jit(net)
        call = lambda: compiled(x)
    else:
        call = models.training_step(name, *training_batch(name))
    call()
    call()
    repeats = 1
    while True:
        start = time.process_time()
        for _ in range(repeats):
            call()
        spent = time.process_time() - start
        if spent > 0.5:
            break
        repeats *= 2
    with Profiler() as profiler:
        for _ in range(repeats):
            call()
    rows = profiler.rows(by_signature=True)
    # Shares of wall time, scaled to the CPU time of calls: other processes may have run meanwhile.
    scale = spent / sum(row.seconds for row in rows)
    limits = peaks(1)
    return {
        "seconds": spent / repeats,
        "flops": limits.flops,
        "bandwidth": limits.bandwidth,
        "rows": [
            {
                "op": r.name,
                "types": r.types,
                "seconds": r.seconds * scale / repeats,
                "limit": r.limit / repeats,
                "flops": r.flops / repeats,
                "bytes": r.bytes / repeats,
            }
            for r in rows
        ],
        "memory": max((plan_of(p) for p in executable.live_programs()), key=lambda plan: plan["peak"]),
    }  # fmt: skip


def plan_of(program) -> dict:
    plan = program.info
    return {
        "peak": plan.peak,
        "lower_bound": plan.lower_bound,
        "steps": program.instruction_count,
        "blocks": plan.values,
    }


def measure() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from models_data import INFERENCE_GFLOP, TRAINING_GFLOP

    found = {}
    for name in (*INFERENCE_GFLOP, *TRAINING_GFLOP):
        command = ["taskset", "-c", "0", sys.executable, __file__, "--network", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[name] = json.loads(done.stdout)
        if name != PLANNED:
            del found[name]["memory"]
        print(f"{name}: {found[name]['seconds'] * 1e3:.3f} ms")
    DATA.write_text(json.dumps(found))


# ---- drawing -----------------------------------------------------------------------------------------------


class Picture:
    """An SVG image."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title, self.parts = (width, height), title, []
        self.box(0, 0, width, height, "#ffffff")
        self.text(16, 26, title, size=16, weight="bold")

    def box(self, x, y, width, height, color, hint="", edge="none") -> None:
        inner = f"<title>{escape(hint)}</title>" if hint else ""
        self.parts.append(
            f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{color}" '
            f'stroke="{edge}" stroke-width="0.4">{inner}</rect>'
        )

    def line(self, x1, y1, x2, y2, color="#cbd5e0", width=1.0, dash="") -> None:
        self.parts.append(
            f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="{color}" '
            f'stroke-width="{width}" stroke-dasharray="{dash}"/>'
        )

    def dot(self, x, y, radius, color, hint) -> None:
        self.parts.append(
            f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius:.2f}" fill="{color}" fill-opacity="0.65" '
            f'stroke="#1a202c" stroke-width="0.4"><title>{escape(hint)}</title></circle>'
        )

    def text(
        self, x, y, content, size=11, anchor="start", color="#1a202c", weight="normal", halo="none"
    ) -> None:
        place = (
            f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}"'
        )
        if halo != "none":  # the same text behind, thicker
            self.parts.append(f'{place} stroke="{halo}" stroke-width="4">{escape(content)}</text>')
        self.parts.append(f'{place} fill="{color}">{escape(content)}</text>')

    def legend(self, x, y, names, step=16) -> None:
        for i, name in enumerate(names):
            self.box(x, y + i * step, 10, 10, GROUPS[name][0])
            self.text(x + 15, y + 9 + i * step, name)

    def save(self, name: str) -> None:
        width, height = self.size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" role="img" aria-label="{escape(self.title)}">'
        )
        (FOLDER / name).write_text("\n".join([head, *self.parts, "</svg>"]) + "\n")


def draw_roofline(data: dict) -> None:
    """Operations a second of every op that takes 1 % of a network, over operations per byte."""
    peak = max(d["flops"] for d in data.values())
    bandwidth = [max(rates) for rates in zip(*([r for _, r in d["bandwidth"]] for d in data.values()))]
    sizes = [size for size, _ in next(iter(data.values()))["bandwidth"]]
    picture = Picture(900, 560, "Roofline of one core: every op that takes at least 1 % of a network")
    left, top, width, height = 70, 50, 640, 440
    x_low, x_high, y_low, y_high = -1.5, 3.0, -0.3, math.log10(peak / 1e9) + 0.45

    def at(intensity: float, rate: float) -> tuple[float, float]:
        x = (math.log10(intensity) - x_low) / (x_high - x_low)
        y = (math.log10(rate / 1e9) - y_low) / (y_high - y_low)
        return left + width * min(max(x, 0), 1), top + height * (1 - min(max(y, 0), 1))

    for power in range(-1, 4):
        x, _ = at(10.0**power, peak)
        picture.line(x, top, x, top + height)
        picture.text(x, top + height + 16, f"{10.0**power:g}", anchor="middle")
    for power in range(3):
        _, y = at(1, 10.0 ** (power + 9))
        picture.line(left, y, left + width, y)
        picture.text(left - 6, y + 4, f"{10.0**power:g}", anchor="end")
    picture.text(left + width / 2, top + height + 36, "operations per byte read or written", anchor="middle")
    picture.text(left, top - 8, "GFLOP/s")
    labels = (f"copy at {sizes[0] >> 10} KB", f"at {sizes[1] >> 20} MB", f"at {sizes[2] >> 20} MB")
    for rate in bandwidth:
        start, knee = 10.0**x_low, peak / rate
        x, y = at(start, rate * start)
        picture.line(x, y, *at(knee, peak), color="#1a202c", width=1.2, dash="5 3")
    x, y = at(peak / bandwidth[0], peak)
    picture.line(x, y, left + width, y, color="#1a202c", width=1.6)
    picture.text(left + width - 4, y - 6, f"{peak / 1e9:.0f} GFLOP/s", anchor="end")
    used = set()
    for name, network in data.items():
        for row in network["rows"]:
            share = row["seconds"] / network["seconds"]
            if share < 0.01 or not row["flops"] or not row["bytes"]:
                continue
            rate = row["flops"] / row["seconds"]
            group = group_of(row["op"])
            used.add(group)
            hint = f"{name}: {row['op']} {row['types']}, {rate / 1e9:.1f} GFLOP/s, {share:.1%} of the time"
            x, y = at(row["flops"] / row["bytes"], rate)
            picture.dot(x, y, 2 + 14 * math.sqrt(share), GROUPS[group][0], hint)
    for rate, label in zip(bandwidth, labels):
        x, y = at(10.0**x_low * 1.1, rate * 10.0**x_low * 1.1)
        picture.text(x + 4, y - 6, f"{label}: {rate / 1e9:.0f} GB/s", size=10, halo="#ffffff")
    picture.legend(730, 70, [g for g in GROUPS if g in used])
    note = "area: share of the|network's time||above the roof:|Winograd needs fewer|operations than"
    note += "|the definition counts"
    for i, text in enumerate(note.split("|")):
        picture.text(730, 270 + 15 * i, text, color="#4a5568")
    picture.save("roofline.svg")


def draw_time(data: dict) -> None:
    """Where the time of one call goes, and how much of it the roofline would allow."""
    picture = Picture(900, 110 + 34 * len(data), "Where the time goes, one core, compiled")
    left, width, top = 180, 520, 78
    totals = {name: sum(r["seconds"] for r in network["rows"]) for name, network in data.items()}
    used = []
    for i, (name, network) in enumerate(data.items()):
        y, x = top + 34 * i, float(left)
        sums: dict[str, float] = {}
        for row in network["rows"]:
            group = group_of(row["op"])
            sums[group] = sums.get(group, 0.0) + row["seconds"]
        picture.text(left - 8, y + 15, name, anchor="end")
        for group in GROUPS:
            part = sums.get(group, 0.0) / totals[name]
            if part <= 0:
                continue
            used.append(group)
            picture.box(x, y, width * part, 20, GROUPS[group][0], f"{group}: {part:.1%}")
            if part > 0.07:
                picture.text(x + width * part / 2, y + 14, f"{part:.0%}", 10, "middle", "#ffffff")
            x += width * part
        limit = sum(r["limit"] for r in network["rows"]) / totals[name]
        mark = left + width * min(limit, 1)
        picture.line(mark, y - 3, mark, y + 23, "#1a202c", 1.5)
        picture.text(left + width + 10, y + 15, f"{network['seconds'] * 1e3:.4g} ms; roofline {limit:.0%}")
    x = 16
    for group in (g for g in GROUPS if g in used):
        picture.box(x, 46, 9, 9, GROUPS[group][0])
        picture.text(x + 12, 54, group, 10)
        x += 20 + 5.1 * len(group)
    picture.save("time.svg")


def draw_memory(data: dict) -> None:
    """The arena of a training step: each value a rectangle, time to the right, offset upwards."""
    plan = data[PLANNED]["memory"]
    picture = Picture(900, 520, f"Memory plan of a training step: {PLANNED}")
    left, top, width, height = 80, 60, 780, 400
    peak, steps = plan["peak"], plan["steps"]
    picture.box(left, top, width, height, "#f7fafc")
    for op, size, offset, first, last in plan["blocks"]:
        x, w = left + width * first / steps, width * (last - first + 1) / steps
        h = height * size / peak
        y = top + height * (1 - offset / peak) - h
        hint = f"{op}: {size / 2**20:.2f} MB, instructions {first} to {last}"
        picture.box(x, y, w, h, GROUPS[group_of(op)][0], hint, edge="#ffffff")
    bound = top + height * (1 - plan["lower_bound"] / peak)
    picture.line(left, bound, left + width, bound, "#c53030", 1.2, "6 3")
    text = f"{peak / 2**20:.1f} MB in one block; lower bound {plan['lower_bound'] / 2**20:.1f} MB (dashed)"
    picture.text(left, top - 10, text)
    for part in range(5):
        y = top + height * (1 - part / 4) + 4
        picture.text(left - 6, y, f"{peak * part / 4 / 2**20:.0f} MB", 10, "end")
    text = f"instructions 0 to {steps}: forward, then backward"
    picture.text(left + width / 2, top + height + 20, text, anchor="middle")
    groups = {group_of(b[0]) for b in plan["blocks"]}
    x = left
    for group in (g for g in GROUPS if g in groups):
        picture.box(x, top + height + 34, 9, 9, GROUPS[group][0])
        picture.text(x + 12, top + height + 42, group, 10)
        x += 24 + 5.6 * len(group)
    picture.save("memory.svg")


def main() -> None:
    if "--network" in sys.argv:
        print(json.dumps(measure_network(sys.argv[sys.argv.index("--network") + 1])))
        return
    FOLDER.mkdir(exist_ok=True)
    if "--measure" in sys.argv:
        os.environ["MYCELIA_NUM_THREADS"] = "1"
        measure()
    data = json.loads(DATA.read_text())
    draw_roofline(data)
    draw_time(data)
    draw_memory(data)


if __name__ == "__main__":
    main()
