"""start, stop and status: the web service."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

from mycelia_insight.service import logs, process, settings
from mycelia_insight.service.settings import SettingError, Settings


class WrongOption(typer.BadParameter):
    """What is wrong with an option, below the usage, as argparse tells it; exit code 2."""

    def show(self, file=None) -> None:
        if self.ctx is not None:
            typer.echo(self.ctx.get_usage(), err=True)
        name = self.ctx.command_path if self.ctx is not None else "mycelia-insight"
        typer.echo(f"{name}: error: {self.message}", err=True)


def settings_of(context: typer.Context, given: dict[str, object], config: str = "") -> Settings:
    """Settings with what options say.  Errors: WrongOption; Exit, its text printed."""
    try:
        return settings.of(given, config)
    except SettingError as error:
        if str(error).startswith("--") and not str(error).startswith("--host"):
            raise WrongOption(str(error), context) from error
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


def start(
    context: typer.Context,
    workspace: Annotated[
        str | None, typer.Option(help="Folder of logs and columns; ~/mycelia-insight if nothing is said.")
    ] = None,
    port: Annotated[str | None, typer.Option(help="1 to 65535, 8080 if nothing is said.")] = None,
    url_path_prefix: Annotated[str | None, typer.Option(help="What stands in front of all paths.")] = None,
    reload_interval: Annotated[
        str | None, typer.Option(help="Seconds between two looks for new runs, 0 to 300; 0: one look.")
    ] = None,
    summary_base_dir: Annotated[
        str | None, typer.Option(help="The folder of runs; the current one if nothing is said.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at.")] = None,
    token: Annotated[str | None, typer.Option(help="What a request must bring.")] = None,
    no_token: Annotated[bool, typer.Option("--no-token", help="No token, whatever variables say.")] = False,
    allow_delete: Annotated[
        bool | None, typer.Option("--allow-delete", help="Runs may be deleted from the pages.")
    ] = None,
    config: Annotated[str, typer.Option(help="file:/path.py, .toml, .json, or python:package.module.")] = "",
    foreground: Annotated[bool, typer.Option("--foreground", help="Serve in this process.")] = False,
    enable_debugger: Annotated[
        str | None, typer.Option(help="true, false, 1 or 0: whether trainings may connect to be debugged.")
    ] = None,
    debugger_port: Annotated[
        str | None, typer.Option(help="Where they connect, 1 to 65535, not --port; 50051 if nothing is said.")
    ] = None,
    offline_debugger_mem_limit: Annotated[
        str | None, typer.Option(help="512 to 2147483647 MB; accepted without effect.")
    ] = None,
    max_offline_debugger_session_num: Annotated[
        str | None,
        typer.Option(help="Dumps that are open in the debugger at a time, 1 to 8; 2 if nothing is said."),
    ] = None,
    max_graph_node_size: Annotated[
        str | None, typer.Option(help="1 to 2000000; accepted without effect: graphs of any size open.")
    ] = None,
) -> None:
    """Start the web service in the background."""
    if no_token and token:
        raise WrongOption("--token and --no-token exclude one another", context)
    given = dict(
        workspace=workspace, port=port, url_path_prefix=url_path_prefix, reload_interval=reload_interval,
        summary_base_dir=summary_base_dir, host=host, token="" if no_token else token,
        allow_delete=allow_delete, enable_debugger=enable_debugger, debugger_port=debugger_port,
        offline_debugger_mem_limit=offline_debugger_mem_limit,
        max_offline_debugger_session_num=max_offline_debugger_session_num,
        max_graph_node_size=max_graph_node_size,
    )  # fmt: skip
    chosen = settings_of(context, given, config)
    if chosen.port < 1024 and os.geteuid() != 0:
        typer.echo(f"Port {chosen.port} is below 1024, which only root may use.", err=True)
        raise typer.Exit(1)
    if not os.path.isdir(chosen.summary_base_dir):
        typer.echo(f"[WARNING] {chosen.summary_base_dir} is not there yet; runs are shown when they come.")
    _look_for_another(chosen)
    typer.echo(f"Workspace: {chosen.workspace}")
    typer.echo(f"Summary base dir: {chosen.summary_base_dir}")
    lines = [f"{name} = {value}" for name, value in given.items() if value is not None and name != "token"]
    lines.append(f"Summary base dir is {chosen.summary_base_dir}")
    logs.write_script(chosen.workspace, chosen.port, "start", lines)
    address = f"{chosen.address}{'?token=' + chosen.token if chosen.token else ''}"
    if foreground:
        typer.echo(f"Web address: {address}")
        process.replace(chosen)
    try:
        state, log = process.start(chosen)
    except OSError as error:
        typer.echo(f"The workspace cannot be written to: {error}", err=True)
        typer.echo("service start state: failed")
        raise typer.Exit(1) from error
    if state == "success":
        typer.echo(f"Web address: {address}")
    typer.echo(f"service start state: {state}")
    logs.write_script(chosen.workspace, chosen.port, "start", [f"service start state: {state}"])
    if state != "success":
        typer.echo(f"For what went wrong see {log}")
        raise typer.Exit(1 if state == "failed" else 0)


def _look_for_another(chosen: Settings) -> None:
    """A service that serves the same already, exit code 2; whoever else has the port, exit code 1."""
    service = process.at(chosen.port)
    if service is not None and service.summary_base_dir == chosen.summary_base_dir:
        typer.echo(
            f"Reusing Mycelia Insight on port {service.port}. "
            f'(pid {service.pid}, Use "mycelia-insight stop --port {service.port}" to stop it.) '
            f"Web address: {service.address}"
        )
        raise typer.Exit(2)
    if why := process.port_error(chosen):
        typer.echo(f"Port not available error. Detail: Mycelia Insight {why}")
        raise typer.Exit(1)


def stop(
    context: typer.Context,
    port: Annotated[str, typer.Option(help="The service's port, 1 to 65535.")] = "8080",
) -> None:
    """Stop the service of the current user on a port."""
    if not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise WrongOption("--port should be chosen from 1 to 65535", context)
    service = process.at(int(port))
    if service is None:
        typer.echo(f"No mycelia-insight service started by current user found for port {port}")
        raise typer.Exit(1)
    process.stop(service)
    told = "Stop mycelia-insight service successfully"
    logs.write_script(service.workspace, service.port, "stop", [f"port = {port}", told])
    typer.echo(told)


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
