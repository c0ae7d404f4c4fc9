"""`mycelia cache` and `mycelia-cache`: commands of the cache server."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: no word in brackets is taken for markup
    help="A server that keeps preprocessed rows for training processes.",
)

Port = Annotated[int | None, typer.Option("--port", "-p", help="Port of the server [50052].")]
Host = Annotated[str | None, typer.Option("--hostname", "-h", help="Host of the server [127.0.0.1].")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def main() -> None:
    """A server that keeps preprocessed rows for training processes."""


@app.command()
def version() -> None:
    """Print the version of mycelia-cache."""
    import mycelia_cache

    typer.echo(mycelia_cache.__version__)


def _where(host: str | None, port: int | None) -> tuple[str, int]:
    from mycelia import config

    return _tried(lambda: (host or config.get("cache_host"), port or config.get("cache_port")))


def _tried(work):
    """The result of a command, or its message and exit code 1."""
    from mycelia import errors
    from mycelia_cache.commands import Failed, in_one_line

    try:
        return work()
    except (Failed, errors.MyceliaError) as e:
        typer.echo(in_one_line(e), err=True)
        raise typer.Exit(1) from None


@app.command()
def start(
    port: Port = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Requests at once [half the cores].")
    ] = None,
    memory: Annotated[
        float | None, typer.Option("--memory", "-m", help="GB for all caches together.")
    ] = None,
    ratio: Annotated[
        float, typer.Option("--memory-cap-ratio", "-r", help="Part of the memory for all caches.")
    ] = 0.8,
    spilldir: Annotated[
        str, typer.Option("--spilldir", "-d", "-s", help="Directory for rows without room.")
    ] = "",
    spill_limit: Annotated[int | None, typer.Option("--spill-limit", help="MB on disk, at most.")] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep sessions and rows on disk for the next start.")
    ] = False,
    foreground: Annotated[bool, typer.Option("--foreground", "-f", help="Stay in the foreground.")] = False,
    loglevel: Annotated[int, typer.Option("--loglevel", "-l", help="0 debug ... 4 fatal.")] = 1,
    idle: Annotated[
        float | None, typer.Option("--idle", help="Minutes after which unused sessions end.")
    ] = None,
    backend: Annotated[str, typer.Option("--backend", help="redis://HOST: rows shared by many hosts.")] = "",
    bind: Annotated[str, typer.Option("--bind", help="Address to listen at.")] = "127.0.0.1",
    tls: Annotated[str, typer.Option("--tls", help="Directory with ca.pem, cert.pem, key.pem.")] = "",
) -> None:
    """Start the server."""
    from mycelia_cache import commands, daemon

    def work():
        wish = commands.settings(
            _where(None, port)[1],
            bind=bind,
            workers=commands.default_workers() if workers is None else workers,
            log_level=loglevel,
            spill_dir=spilldir,
            spill_limit=None if spill_limit is None else spill_limit * commands.MEGABYTE,
            memory=None if memory is None else int(memory * commands.GIGABYTE),
            memory_cap_ratio=ratio,
            keep=keep,
            idle_s=None if idle is None else idle * 60,
            backend=backend,
            tls=tls,
        )
        if foreground:
            raise typer.Exit(
                daemon.serve(wish, lambda text: typer.echo(text or f"listening on port {wish.port}"))
            )
        pid = commands.start(wish)
        typer.echo(
            f"Cache server started: process {pid}, port {wish.port}, "
            f"log in {commands.log_directory(wish.port)}"
        )

    _tried(work)


@app.command()
def stop(port: Port = None, hostname: Host = None) -> None:
    """Stop the server: all sessions, memory and files of it go."""
    from mycelia_cache import commands

    host, number = _where(hostname, port)
    _tried(lambda: commands.stop(host, number))
    typer.echo(f"Cache server on port {number} has been stopped successfully.")


@app.command()
def session(port: Port = None, hostname: Host = None) -> None:
    """Make a session and print its number."""
    from mycelia_cache import commands

    typer.echo(_tried(lambda: commands.new_session(*_where(hostname, port))))


@app.command()
def destroy(
    sessions: Annotated[list[int], typer.Argument()], port: Port = None, hostname: Host = None
) -> None:
    """End sessions: their rows go."""
    from mycelia_cache import commands

    for number in sessions:
        _tried(lambda n=number: commands.destroy(*_where(hostname, port), n))
        typer.echo(f"Session {number} is destroyed.")


@app.command("list")
def list_sessions(port: Port = None, hostname: Host = None, json: AsJson = False) -> None:
    """List sessions and their caches."""
    from mycelia_cache import admin, commands

    info = _tried(lambda: commands.overview(*_where(hostname, port)))
    if json:
        _print_json(info)
    else:
        typer.echo(admin.sessions_table(info) if info.sessions else "No active sessions.")


@app.command()
def info(
    port: Port = None,
    hostname: Host = None,
    json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", help="Live, until Ctrl-C.")] = False,
) -> None:
    """Show hit rate, rows, memory and disk of each cache."""
    from mycelia_cache import commands, show

    host, number = _where(hostname, port)
    if watch:
        _tried(lambda: show.watch(lambda: commands.overview(host, number)))
        return
    found = _tried(lambda: commands.overview(host, number))
    if json:
        _print_json(found)
    else:
        show.once(found)


def _print_json(info) -> None:
    import json

    from mycelia_cache import commands

    typer.echo(json.dumps(commands.as_table(info), indent=2))
