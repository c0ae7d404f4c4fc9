"""To tell a running server what to do, and to show what it tells."""

from __future__ import annotations

import json
import time

from mycelia_serving.cluster import runtime


def command(pid: int | None, what: str, **arguments):
    """Give a running server a command. Errors: RuntimeError."""
    return runtime.command(runtime.choose(pid), what, **arguments)


def stop(pid: int | None, now: bool) -> None:
    """Stop a running server and wait for its end. Errors: RuntimeError."""
    number = runtime.choose(pid)
    runtime.command(number, "stop", now=now)
    while number in [server["pid"] for server in runtime.servers()]:
        time.sleep(0.05)


def show_status(pid: int | None, as_json: bool) -> None:
    """Print what a running server tells about itself."""
    told = command(pid, "status")
    if as_json:
        print(json.dumps(told, indent=2))
        return
    from rich.table import Table

    from mycelia.engine.base import terminal

    console = terminal.console()
    state = "stopping" if told["stopping"] else "ready" if told["ready"] else "not ready"
    ports = ", ".join(f"{a['protocol']} {a['address']}" for a in told["addresses"])
    console.print(f"server {told['pid']}: {state}; {ports or 'no ports'}")
    console.print(f"{told['waiting_requests']} requests wait, {told['lost_workers']} workers were lost")
    table = Table()
    for name in ("servable", "version", "state", "worker", "device", "has", "answered", "restarts", "why"):
        table.add_column(name, overflow="fold")
    for servable in told["servables"]:
        rows = _worker_rows(servable) or [("", "", "", "", "", servable["reason"])]
        for at, row in enumerate(rows):
            head = (servable["name"], str(servable["version"]), servable["state"]) if at == 0 else ("",) * 3
            table.add_row(*head, *row)
    console.print(table)


def _worker_rows(servable: dict) -> list[tuple[str, ...]]:
    return [
        (
            f"{worker['address']} {worker['state']}".strip(),
            worker["device"] or "none",
            str(worker["outstanding"]),
            str(worker["answered"]),
            str(worker["restarts"]),
            worker.get("reason", ""),
        )
        for worker in servable["workers"]
    ]


def show_models(pid: int | None, as_json: bool) -> None:
    """Print the signatures of what a running server serves."""
    told = command(pid, "models")
    if as_json:
        print(json.dumps(told, indent=2))
        return

    def tensors(infos: list[dict]) -> str:
        return ", ".join(
            f"{t['name']}: {t['dtype'] or 'any'}{'' if t['shape'] is None else list(t['shape'])}"
            for t in infos
        )

    for model in told:
        print(f"{model['name']} version {model['version']} ({model['state']})")
        for method in model["methods"]:
            batch = f", batches of {method['batch_size']}" if method["batch_size"] else ""
            print(f"  {method['name']}({tensors(method['inputs'])}) -> {tensors(method['outputs'])}{batch}")
