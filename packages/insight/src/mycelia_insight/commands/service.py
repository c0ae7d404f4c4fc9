"""start, stop and status: the web service."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

from mycelia_insight.service import process, settings
from mycelia_insight.service.settings import SettingError, Settings


def _settings(given: dict[str, object], config: str) -> Settings:
    try:
        return settings.of(given, config)
    except SettingError as error:
        if str(error).startswith("--host"):
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from error
        if str(error).startswith("--"):
            raise typer.BadParameter(str(error)) from error
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


def start(
    workspace: Annotated[str | None, typer.Option(help="Folder of logs and columns.")] = None,
    port: Annotated[str | None, typer.Option(help="1 to 65535, 8080 if nothing is said.")] = None,
    url_path_prefix: Annotated[str | None, typer.Option(help="What stands in front of all paths.")] = None,
    reload_interval: Annotated[
        str | None, typer.Option(help="Seconds between two looks for new runs, 0 to 300; 0: one look.")
    ] = None,
    summary_base_dir: Annotated[str | None, typer.Option(help="The folder of runs.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at.")] = None,
    token: Annotated[str | None, typer.Option(help="What a request must bring.")] = None,
    config: Annotated[str, typer.Option(help="file:/path.py, .toml, .json, or python:package.module.")] = "",
    foreground: Annotated[bool, typer.Option("--foreground", help="Serve in this process.")] = False,
) -> None:
    """Start the web service in the background."""
    given = dict(
        workspace=workspace, port=port, url_path_prefix=url_path_prefix, reload_interval=reload_interval,
        summary_base_dir=summary_base_dir, host=host, token=token,
    )  # fmt: skip
    chosen = _settings(given, config)
    if chosen.port < 1024 and os.geteuid() != 0:
        typer.echo(f"Port {chosen.port} is below 1024, which only root may use.", err=True)
        raise typer.Exit(1)
    typer.echo(f"Workspace: {chosen.workspace}")
    typer.echo(f"Summary base dir: {chosen.summary_base_dir}")
    if not os.path.isdir(chosen.summary_base_dir):
        typer.echo(f"[WARNING] {chosen.summary_base_dir} is not there yet; runs are shown when they come.")
    if (
        service := process.at(chosen.port)
    ) is not None and service.summary_base_dir == chosen.summary_base_dir:
        typer.echo(
            f"Reusing Mycelia Insight on port {service.port}. "
            f'(pid {service.pid}, Use "mycelia-insight stop --port {service.port}" to stop it.)'
        )
        typer.echo(f"Web address: {service.address}")
        raise typer.Exit(2)
    if why := process.port_error(chosen):
        holder = f" (pid {service.pid})" if service else ""
        typer.echo(f"Port not available error. Detail: {why}{holder}", err=True)
        raise typer.Exit(1)
    if foreground:
        from mycelia_insight.service.server import serve

        typer.echo(f"Web address: {chosen.address}")
        serve(chosen)
        return
    state, log = process.start(chosen)
    if state == "success":
        typer.echo(f"Web address: {chosen.address}{'?token=' + chosen.token if chosen.token else ''}")
    typer.echo(f"service start state: {state}")
    if state != "success":
        typer.echo(f"For what went wrong see {log}")
        raise typer.Exit(1 if state == "failed" else 0)


def stop(port: Annotated[int, typer.Option(min=1, max=65535, help="The service's port.")] = 8080) -> None:
    """Stop the service of the current user on a port."""
    service = process.at(port)
    if service is None:
        typer.echo(f"No mycelia-insight service started by current user found for port {port}", err=True)
        raise typer.Exit(1)
    process.stop(service)
    typer.echo("Stop mycelia-insight service successfully")


def status(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List running services of the current user."""
    services = process.running()
    if as_json:
        typer.echo(json.dumps([asdict(service) for service in services]))
        return
    if not services:
        typer.echo("No service is running.")
    for service in services:
        place = f"{service.summary_base_dir}  (workspace {service.workspace})"
        typer.echo(f"{service.address}  pid {service.pid}  {place}")
