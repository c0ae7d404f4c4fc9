"""`cache_admin`, alias `dataset-cache`: MindSpore's command line of the cache server, word for word."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field

from mycelia import config, errors
from mycelia_cache import commands
from mycelia_cache.commands import Failed

_COMMANDS = {
    "--start": "start",
    "--stop": "stop",
    "--generate_session": "generate_session",
    "-g": "generate_session",
    "--destroy_session": "destroy_session",
    "-d": "destroy_session",
    "--list_sessions": "list_sessions",
    "--server_info": "server_info",
    "--help": "help",
}
_VALUES = {
    "-h": "hostname", "--hostname": "hostname",
    "-p": "port", "--port": "port",
    "-w": "workers", "--workers": "workers",
    "-s": "spilldir", "--spilldir": "spilldir",
    "-l": "loglevel", "--loglevel": "loglevel",
    "-m": "memory", "--shared_memory_size": "memory",
    "-r": "ratio", "--memory_cap_ratio": "ratio",
    "--bind": "bind", "--tls": "tls", "--backend": "backend",
    "--idle_minutes": "idle_minutes", "--spill_limit": "spill_limit",
}  # fmt: skip
_FLAGS = {"-f": "foreground", "--foreground": "foreground", "--json": "json", "--keep": "keep",
          "-nospill": "nospill"}  # fmt: skip
_WHOLE = ("port", "workers", "loglevel", "memory", "spill_limit")
_REAL = ("ratio", "idle_minutes")

HELP = """Syntax:
{name} [--start | --stop]
                [[-h | --hostname] <hostname>]            Default is 127.0.0.1.
                [[-p | --port] <port number>]             Default is 50052.
                [[-w | --workers] <number of workers>]    Default is {workers}.
                [[-s | --spilldir] <spilling directory>]  Default is no spilling.
                [[-l | --loglevel] <log level>]           Default is 1 (INFO level).
                [[-m | --shared_memory_size] <GB>]        Default is no limit but the memory cap ratio.
                [[-r | --memory_cap_ratio] <ratio>]       Default is 0.8.
                [-f]                                      Stay in the foreground.
                [--spill_limit <MB>] [--keep] [--idle_minutes <minutes>] [--backend redis://<host>]
                [--bind <address>] [--tls <directory>]
            [--destroy_session  | -d] <session id> [<session id> ...]
                [[-p | --port] <port number>]
            [--generate_session | -g]
                [[-p | --port] <port number>]
            [--list_sessions] [--json]
                [[-p | --port] <port number>]
            [--server_info] [--json]
                [[-p | --port] <port number>]
            [--help]"""


@dataclass
class Parsed:
    """One command with its options."""

    command: str = ""
    sessions: list[int] = field(default_factory=list)
    options: dict = field(default_factory=dict)


def parse(words: list[str], name: str) -> Parsed:
    """What the words of a command line say. Raises Failed for wrong use."""
    parsed, given = Parsed(), set()
    words = list(words)
    design = bool(words) and words[0] in ("start", "session")  # the form of the first design
    if design:
        parsed.command = "start" if words.pop(0) == "start" else "generate_session"
    while words:
        word = words.pop(0)
        kind = "spilldir" if design and word == "-d" else _VALUES.get(word)
        if kind is not None:
            _once(given, kind, word)
            parsed.options[kind] = _value(kind, word, words)
        elif word in _FLAGS:
            _once(given, _FLAGS[word], word)
            parsed.options[_FLAGS[word]] = True
        elif word in _COMMANDS:
            command = _COMMANDS[word]
            _once(given, command, word)
            if parsed.command:
                raise Failed(f"Only one command at a time is allowed.  Invalid command: {word}")
            parsed.command = command
            if command == "destroy_session":
                parsed.sessions = _sessions(word, words)
        else:
            raise Failed(
                f"Invalid arguments provided:  {' '.join([word, *words])}\n"
                f"Please try `{name} --help` for more information"
            )
    if not parsed.command:
        raise Failed("No command provided")
    return parsed


def _once(given: set, kind: str, word: str) -> None:
    if kind in given:
        raise Failed(f"The {word} argument was given more than once.")
    given.add(kind)


def _value(kind: str, word: str, words: list[str]):
    if not words or words[0].startswith("-"):
        raise Failed(f"{word} option requires an argument field.  Syntax: {word} <field>")
    text = words.pop(0)
    try:
        if kind in _WHOLE:
            return int(text)
        return float(text) if kind in _REAL else text
    except ValueError:
        raise Failed(f"Invalid numeric value: {text}") from None


def _sessions(word: str, words: list[str]) -> list[int]:
    found = []
    while words and words[0].isdigit():
        found.append(int(words.pop(0)))
    if not found:
        raise Failed(f"{word} option requires an argument field.  Syntax: {word} <field>")
    return found


def _checked(parsed: Parsed) -> tuple[str, int]:
    """Host and port."""
    host = parsed.options.get("hostname", config.get("cache_host"))
    port = parsed.options.get("port", config.get("cache_port"))
    if not 1025 <= port <= 65535:
        raise Failed("Port must be in range (1025..65535).")
    if host != "127.0.0.1" and not (config.get("cache_token") or config.get("cache_tls")):
        raise Failed(
            f"Invalid host interface: {host}. Current limitation, only 127.0.0.1 can be used."
            " Other hosts need MYCELIA_CACHE_TOKEN or MYCELIA_CACHE_TLS."
        )
    return host, port


def _start(parsed: Parsed, port: int) -> None:
    options = parsed.options
    given = {
        "log_level": options.get("loglevel", 1),
        "spill_dir": "" if options.get("nospill") else options.get("spilldir", ""),
        "keep": options.get("keep", False),
    }
    for name in ("workers", "bind", "tls", "backend"):
        if name in options:
            given[name] = options[name]
    if "memory" in options:
        given["memory"] = options["memory"] * commands.GIGABYTE
    if "ratio" in options:
        given["memory_cap_ratio"] = options["ratio"]
    if "spill_limit" in options:
        given["spill_limit"] = options["spill_limit"] * commands.MEGABYTE
    if "idle_minutes" in options:
        given["idle_s"] = options["idle_minutes"] * 60
    wish = commands.settings(port, **given)
    if options.get("foreground"):
        from mycelia_cache import daemon

        def ready(text: str) -> None:
            print(
                text or f"Cache server startup completed successfully!\nListening on port {port}.", flush=True
            )

        code = daemon.serve(wish, ready)
        if code:
            raise SystemExit(code)
        return
    pid = commands.start(wish)
    print(
        "Cache server startup completed successfully!\n"
        f"The cache server daemon has been created as process id {pid} and listening on port {port}.\n\n"
        "Recommendation:\n"
        "Since the server is detached into its own daemon process, monitor the server logs (under "
        f"{commands.log_directory(port)}) for any issues that may happen after startup"
    )


def sessions_table(info) -> str:
    """The caches of all sessions, one a line."""
    lines = ["     Session    Cache Id  Mem cached Disk cached  Avg cache size  Numa hit"]
    for number in info.sessions:
        caches = sorted((c for c in info.caches if c.session == number), key=lambda c: c.crc)
        if not caches:
            lines.append(_line(number, "n/a", 0, 0, 0, 0))
        for c in caches:
            rows = c.rows_in_memory + c.rows_on_disk
            average = c.row_bytes // rows if rows else 0
            lines.append(_line(number, c.crc, c.rows_in_memory, c.rows_on_disk, average, c.rows_in_memory))
    return "\n".join(lines)


def _line(session, cache, memory, disk, average, numa) -> str:
    cells = [str(n) if n else "n/a" for n in (memory, disk, average, numa)]
    return f"{session:>12}{cache!s:>12}{cells[0]:>12}{cells[1]:>12}{cells[2]:>16}{cells[3]:>10}"


def _server_info(info) -> str:
    rule = "-" * 70
    rows = (
        ("config name", "value"), None, ("hostname", info.hostname), ("port", info.port),
        ("number of workers", info.workers), ("log level", info.log_level),
        ("spill dir", info.spill_dir or "None"), None,
    )  # fmt: skip
    lines = ["Cache Server Configuration: ", rule]
    lines += [rule if row is None else f"{row[0]:<20}{row[1]!s:<50}" for row in rows]
    lines.append("Active sessions: ")
    lines.append("  ".join(map(str, info.sessions)) if info.sessions else "No active sessions.")
    return "\n".join(lines)


def run(words: list[str], name: str) -> None:
    """Carry out one command line. Raises Failed."""
    if not words:
        raise Failed(HELP.format(name=name, workers=commands.default_workers()))
    parsed = parse(words, name)
    if parsed.command == "help":
        print(HELP.format(name=name, workers=commands.default_workers()))
        return
    host, port = _checked(parsed)
    as_json = parsed.options.get("json", False)
    if parsed.command == "start":
        _start(parsed, port)
    elif parsed.command == "stop":
        commands.stop(host, port)
        print(f"Cache server on port {port} has been stopped successfully.")
    elif parsed.command == "generate_session":
        print(f"Session created for server on port {port}: {commands.new_session(host, port)}")
    elif parsed.command == "destroy_session":
        for session in parsed.sessions:
            commands.destroy(host, port, session)
            print(f"Drop session {session} successfully for server on port {port}")
    elif as_json:
        print(json.dumps(commands.as_table(commands.overview(host, port)), indent=2))
    elif parsed.command == "list_sessions":
        print(f"Listing sessions for server on port {port}\n")
        info = commands.overview(host, port)
        print(sessions_table(info) if info.sessions else "No active sessions.")
    else:
        print(_server_info(commands.overview(host, port)))


def main(words: list[str] | None = None) -> int:
    """`cache_admin`: 0 if all went well, else 1."""
    words = sys.argv[1:] if words is None else words
    try:
        run(words, "dataset-cache")
    except (Failed, errors.MyceliaError) as e:
        print(commands.in_one_line(e), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
