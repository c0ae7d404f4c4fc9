"""What a server does, as tables on the terminal: once, or live."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mycelia.engine.base import terminal
from mycelia_cache.protocol import State

_EVERY_S = 0.5


def bytes_text(size: float) -> str:
    """A number of bytes in the unit that fits."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def _rate(hits: int, misses: int) -> str:
    return f"{100 * hits / (hits + misses):.1f} %" if hits + misses else "-"


def page(info, before=None, elapsed_s: float = 0.0) -> Group:
    """The server and its caches; with the overview of a moment before also rows per second."""
    memory = f"{bytes_text(info.memory_used)} of {bytes_text(info.memory_cap)}"
    head = Text(
        f"cache server on {info.hostname}:{info.port}, process {info.pid}, up {info.uptime_s:.0f} s, "
        f"{info.clients} clients, memory {memory}, spill {info.spill_dir or 'none'}"
        + (f", backend {info.backend}" if info.backend else "")
    )
    table = Table()
    for name in ("session", "cache", "pipeline", "state"):
        table.add_column(name, overflow="fold")
    for name in ("rows", "memory", "disk", "hit rate", "hits/s", "clients"):
        table.add_column(name, justify="right")
    earlier = {} if before is None else {(c.session, c.crc): c.hits for c in before.caches}
    with_caches = set()
    for c in info.caches:
        with_caches.add(c.session)
        gained = c.hits - earlier.get((c.session, c.crc), c.hits)
        table.add_row(
            str(c.session), f"{c.crc}", c.pipeline, State(c.state).name.lower(),
            f"{c.rows_in_memory} + {c.rows_on_disk}" if c.rows_on_disk else str(c.rows_in_memory),
            bytes_text(c.bytes_in_memory), bytes_text(c.bytes_on_disk), _rate(c.hits, c.misses),
            f"{gained / elapsed_s:.0f}" if elapsed_s else "-", str(c.clients),
        )  # fmt: skip
    for number in info.sessions:
        if number not in with_caches:
            table.add_row(str(number), *["-"] * 9)
    return Group(head, table if info.sessions else Text("no sessions"))


def once(info) -> None:
    """Print the page."""
    terminal.console().print(page(info))


def watch(overview, console: Console | None = None, every_s: float = _EVERY_S) -> None:
    """Show the page until Ctrl-C; `overview` asks the server, every so many seconds."""
    before, at = overview(), time.monotonic()
    try:
        with Live(page(before), console=console, refresh_per_second=4) as live:
            while True:
                time.sleep(every_s)
                now, then = overview(), time.monotonic()
                live.update(page(now, before, then - at))
                before, at = now, then
    except KeyboardInterrupt:
        pass
