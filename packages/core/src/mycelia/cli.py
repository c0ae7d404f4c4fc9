"""The `mycelia` command. Other distributions add sub-commands (entry points `mycelia.cli`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from mycelia.engine.base import config, errors, plugins
from mycelia.io.files import write_text


class _LazyGroup(TyperGroup):
    """A group that also knows the installed sub-commands, without importing them."""

    def list_commands(self, ctx) -> list[str]:
        return super().list_commands(ctx) + [p.name for p in plugins.entry_points(plugins.CLI_GROUP)]

    def get_command(self, ctx, name):
        command = super().get_command(ctx, name)
        if command is not None:
            return command
        for point in plugins.entry_points(plugins.CLI_GROUP):
            if point.name == name:
                try:
                    return typer.main.get_command(point.load())
                except ImportError as cause:
                    distribution = point.dist.name if point.dist else point.value
                    typer.echo(f"mycelia {name}: {distribution} cannot be loaded: {cause}", err=True)
                    raise typer.Exit(1) from cause
        return None

    def format_commands(self, ctx, formatter) -> None:
        rows = [(name, super(_LazyGroup, self).get_command(ctx, name)) for name in super().list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, c.get_short_help_str()) for name, c in rows if c])
        points = plugins.entry_points(plugins.CLI_GROUP)
        if points:
            with formatter.section("Commands of installed packages"):
                formatter.write_dl(
                    [(p.name, f"from {p.dist.name} {p.dist.version}" if p.dist else p.value) for p in points]
                )


app = typer.Typer(
    cls=_LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: list_commands must not load what it lists
    pretty_exceptions_enable=False,
    help="Mycelia: tensors, gradients, graphs and training.",
)


@app.callback()
def _root() -> None:
    """Mycelia: tensors, gradients, graphs and training."""


@app.command("plugins")
def list_plugins() -> None:
    """List the plugins that were found, and the hooks that each implements."""
    for plugin in plugins.found():
        state = f"NOT LOADED: {plugin.error}" if plugin.error else ", ".join(plugin.hooks) or "no hooks"
        typer.echo(f"{plugin.name:20} {plugin.distribution} {plugin.version}: {state}")


@app.command("env")
def show_settings() -> None:
    """List all settings: value in force (not of secrets), set_context key, environment variables, meaning."""
    from mycelia.engine.base.redaction import shown

    for setting in config.SETTINGS.values():
        typer.echo(f"{setting.key} = {shown(setting.key, config.get(setting.key))}")
        if setting.env:
            typer.echo(f"    {', '.join(setting.env)}")
        typer.echo(f"    {setting.doc}" + ("" if setting.in_effect else " (accepted without effect)"))


@app.command()
def info() -> None:
    """Tell versions, the machine, and the backends that are installed."""
    import platform
    from importlib.metadata import version

    typer.echo(f"mycelia-core {version('mycelia-core')}, numpy {version('numpy')}")
    typer.echo(f"Python {platform.python_version()} at {sys.executable}")
    typer.echo(f"{platform.platform()}, {platform.machine()}")
    for plugin in plugins.found():
        if "mycelia_backends" in plugin.hooks:
            names = _backend_names(plugin.name)
            typer.echo(f"backends of {plugin.distribution} {plugin.version}: {names}")


def _backend_names(plugin_name: str) -> str:
    plugin = plugins.manager().get_plugin(plugin_name)
    try:
        return ", ".join(backend.name for backend in plugin.mycelia_backends())
    except ImportError as cause:
        return f"NOT USABLE: {cause}"


# Options behind the script's name are the script's.
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
_Script = Annotated[
    Path,
    typer.Argument(exists=True, dir_okay=False, help="A script written for MindSpore, and its arguments."),
]


def _truth(option: str, text: str) -> bool:
    """MindSpore's msrun takes True and False as words."""
    if text.lower() not in ("true", "false"):
        raise typer.BadParameter(f"{option} must be True or False, but got {text}")
    return text.lower() == "true"


def _local_ranks(text: str) -> list[int] | None:
    """Those that are shown; None: all."""
    try:
        return None if text == "-1" else [int(n) for n in text.split(",") if n.strip()]
    except ValueError:
        raise typer.BadParameter(
            f"--tail_worker_log must be local ranks such as 0,1, or -1, but got {text}"
        ) from None


@app.command(context_settings=_PASS_ON)
def run(ctx: typer.Context, script: _Script) -> None:
    """Run a MindSpore script as it is: `import mindspore` means mycelia."""
    from mycelia.faces.compat import script as scripts

    scripts.run(script, ctx.args)


# Options of both that start processes.
ClusterTimeOut = Annotated[
    int, typer.Option("--cluster_time_out", help="Seconds in which all processes must have come.")
]
Restarts = Annotated[
    int, typer.Option("--restarts", help="How often all are started anew after one has failed.")
]
LeastWorkers = Annotated[
    int, typer.Option("--min_worker_num", help="Each time with one process fewer, down to this many.")
]


@app.command(context_settings=_PASS_ON)
def msrun(
    ctx: typer.Context,
    task_script: Annotated[str, typer.Argument(help="A script, or another program, and its arguments.")],
    worker_num: Annotated[int, typer.Option("--worker_num", help="Processes of the job.")] = 8,
    local_worker_num: Annotated[
        int, typer.Option("--local_worker_num", help="Those on this machine; by default all.")
    ] = -1,
    master_addr: Annotated[
        str, typer.Option("--master_addr", help="Where the processes meet: an address of a machine.")
    ] = "127.0.0.1",
    master_port: Annotated[
        int | None, typer.Option("--master_port", help="Its port: 8118; on one machine any that is free.")
    ] = None,
    node_rank: Annotated[
        int, typer.Option("--node_rank", help="Number of this machine; -1: ranks in order of arrival.")
    ] = -1,
    log_dir: Annotated[Path, typer.Option("--log_dir", help="Folder of the logs, one a rank.")] = Path(),
    join: Annotated[
        str, typer.Option("--join", help="False: come back at once, and let the job run.")
    ] = "True",
    cluster_time_out: ClusterTimeOut = 600,
    bind_core: Annotated[
        str, typer.Option("--bind_core", help="True: each process keeps to cores of its own.")
    ] = "False",
    worker_log_name: Annotated[
        str, typer.Option("--worker_log_name", help="Name of a log without .log; [rankid] is the rank.")
    ] = "worker_[rankid]",
    tail_worker_log: Annotated[
        str, typer.Option("--tail_worker_log", help="Local ranks that are shown: 0,1; -1: all.")
    ] = "-1",
    restarts: Restarts = 0,
    min_worker_num: LeastWorkers = -1,
) -> None:
    """Run a script in several processes that find one another by communication.init(); one that fails ends
    all, its traceback is shown last, and its exit code is that of the command.
    """
    from mycelia.parallel import launcher

    if not _truth("--join", join):
        command = [sys.executable, "-m", "mycelia", *sys.argv[1:]]
        log_dir.mkdir(parents=True, exist_ok=True)
        number = launcher.leave_running(command, log_dir)
        typer.echo(f"process {number} runs the job; its logs are in {log_dir}")
        return
    try:
        job = launcher.Job(
            [task_script, *ctx.args], worker_num, local_worker_num, master_addr, master_port, node_rank,
            log_dir, cluster_time_out, _truth("--bind_core", bind_core), worker_log_name,
            _local_ranks(tail_worker_log), restarts, min_worker_num,
        )  # fmt: skip
    except errors.MyceliaValueError as cause:
        raise typer.BadParameter(str(cause).splitlines()[0]) from None
    try:
        code = launcher.run(job)
    except (OSError, errors.MyceliaRuntimeError) as cause:  # no such program, a taken port
        typer.echo(f"msrun: {cause}", err=True)
        code = 1
    raise typer.Exit(code)


@app.command(context_settings=_PASS_ON)
def launch(
    ctx: typer.Context,
    task_script: Annotated[str, typer.Argument(help="A script, or another program, and its arguments.")],
    engine: Annotated[str, typer.Option("--engine", help="Who places the processes: ray.")] = "ray",
    address: Annotated[
        str | None,
        typer.Option("--address", help="Of the cluster; else RAY_ADDRESS, or one of this machine alone."),
    ] = None,
    worker_num: Annotated[int, typer.Option("--worker_num", help="Processes of the job.")] = 8,
    cpus: Annotated[float, typer.Option("--cpus", help="CPUs of each process.")] = 1.0,
    log_dir: Annotated[
        Path, typer.Option("--log_dir", help="Folder of the logs, on the machine of each rank.")
    ] = Path(),
    cluster_time_out: ClusterTimeOut = 600,
    restarts: Restarts = 0,
    min_worker_num: LeastWorkers = -1,
) -> None:
    """Run a script in several processes on the machines of a Ray cluster; they meet and fail as those of
    msrun.
    """
    from mycelia.parallel import launcher, ray_launcher

    if engine != "ray":
        raise typer.BadParameter(f"--engine must be ray, but got {engine}; msrun needs none")
    if not cpus > 0:
        raise typer.BadParameter(f"--cpus must be positive, but got {cpus:g}")
    try:
        job = launcher.Job(
            [task_script, *ctx.args], worker_num, log_dir=log_dir, cluster_time_out=cluster_time_out,
            restarts=restarts, min_worker_num=min_worker_num, program="launch",
        )  # fmt: skip
    except errors.MyceliaValueError as cause:
        raise typer.BadParameter(str(cause).splitlines()[0]) from None
    try:
        code = ray_launcher.run(job, address, cpus)
    except (OSError, errors.MyceliaRuntimeError) as cause:
        typer.echo(f"launch: {cause}", err=True)
        code = 1
    raise typer.Exit(code)


@app.command()
def doctor(
    where: Annotated[
        Path | None, typer.Argument(exists=True, help="A script, or a folder with scripts.")
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="With --train: the script's arguments, behind a --.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as JSON.")] = False,
    train: Annotated[
        bool,
        typer.Option("--train", help="Run the script, and check its training."),
    ] = False,
    report_to: Annotated[
        Path | None, typer.Option("--report", help="With --train: write what other runs are compared with.")
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="The --report of the run to compare with."),
    ] = None,
    summary_dir: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="Check what a training recorded in it."),
    ] = None,
) -> None:
    """Tell which names of MindSpore scripts use that are missing here, without running them; with --train
    also what is wrong with data, hyper-parameters, network and precision of a training, with --summary-dir
    what its records tell of that.
    """
    if summary_dir is not None:
        from mycelia.train.checks import command

        if where is not None or train:
            raise typer.BadParameter("it is given instead of a script", param_hint="--summary-dir")
        try:
            code = command.check_summaries(summary_dir, as_json)
        except ValueError as cause:
            raise typer.BadParameter(str(cause), param_hint="--summary-dir") from None
        raise typer.Exit(code)
    if where is None:
        raise typer.BadParameter("a script, or a folder with scripts, is missing", param_hint="where")
    from mycelia.faces.compat import doctor as doctors

    report = doctors.examine(where)
    if train:
        from mycelia.faces.compat import script as scripts
        from mycelia.train.checks import command

        if where.is_dir():
            raise typer.BadParameter(f"{where} is a folder; --train runs a script", param_hint="where")
        names = [f"line {f.line}: {f.name} {f.advice}".rstrip() for f in report.findings if f.is_error]
        run = lambda: scripts.run(where, arguments or [])
        raise typer.Exit(command.check_training(run, where, names, as_json, report_to, reference))
    doctors.show(report, as_json=as_json)
    if not report.ok:
        raise typer.Exit(1)


@app.command()
def plan(
    where: Annotated[
        Path | None, typer.Argument(exists=True, dir_okay=False, help="The script of a training.")
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The script's arguments, behind a --.")
    ] = None,
    ranks: Annotated[int, typer.Option(min=1, help="Priced are 1, 2, 4 ... and as many.")] = 8,
    strategy: Annotated[
        str, typer.Option(help="data_parallel, zero1, zero2, zero3, several with commas, or all.")
    ] = "data_parallel",
    network: Annotated[
        str,
        typer.Option(help="A TOML file of levels, or ethernet-10g, ethernet-100g, infiniband-ndr (nominal)."),
    ] = "ethernet-100g",
    measure_network: Annotated[
        int, typer.Option(help="Measure it between so many processes of this machine, and write --network.")
    ] = 0,
    bucket_mb: Annotated[float, typer.Option(min=0.001, help="MiB of gradients sent at a time.")] = 25.0,
    overlap: Annotated[
        bool, typer.Option(help="Gradients are sent while the backward pass goes on.")
    ] = False,
    flops: Annotated[
        float, typer.Option(min=0, help="Operations a second of another device; with --bandwidth.")
    ] = 0.0,
    bandwidth: Annotated[float, typer.Option(min=0, help="Its bytes of memory a second.")] = 0.0,
    steps: Annotated[int, typer.Option(min=1, help="Steps that are measured; then the script ends.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Write the plans as JSON.")] = False,
    svg: Annotated[Path | None, typer.Option(help="A file for the curves of efficiency and memory.")] = None,
) -> None:
    """Tell what a training costs on many ranks: memory of each and time of a step, from a few steps on one
    and a description of the network.
    """
    import json

    from mycelia.parallel import planning
    from mycelia.parallel.planning import measuring, report

    if (where is None) == (measure_network == 0):
        raise typer.BadParameter("a script, or --measure-network", param_hint="where")
    try:
        if where is None:
            write_text(Path(network), planning.text_of(measuring.measured(measure_network)))
            return
        names = planning.STRATEGIES if strategy == "all" else [n.strip() for n in strategy.split(",")]
        links = planning.NETWORKS.get(network) or planning.read_network(network)
        if (flops > 0) != (bandwidth > 0):
            raise typer.BadParameter("it needs --bandwidth, and the other way round", param_hint="--flops")
        price = lambda step, count, name, seconds=None: planning.price(
            step, links, count, name, seconds, overlap, int(bucket_mb * (1 << 20))
        )
        for name in names:  # what is wrong with them is told before the script runs
            price(planning.Step(0, 0, 0, 0, 0, ()), ranks, name)
    except (OSError, errors.MyceliaValueError, NotImplementedError) as cause:
        raise typer.BadParameter(str(cause).splitlines()[0]) from None
    from mycelia.faces.compat import script as scripts
    from mycelia.train.planning import measure

    step = measure(lambda: scripts.run(where, arguments or []), steps)
    if step is None:
        typer.echo(f"plan: {where} made too few steps of a training: the first ones only compile", err=True)
        raise typer.Exit(1)
    seconds = step.on(flops, bandwidth) if flops else step.seconds
    plans = [price(step, count, name, seconds) for name in names for count in report.sizes_of(ranks)]
    if svg is not None:
        from mycelia.parallel.planning import drawing

        write_text(svg, drawing.svg(plans))
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in plans], indent=1))
        return
    typer.echo(report.headline(step, seconds))
    typer.echo(report.table(plans))


debug = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What a run left behind.")
app.add_typer(debug, name="debug")


@debug.callback()
def _debug() -> None:
    """What a run left behind."""


@debug.command()
def bundle(
    run: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The folder of the run.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The archive.")] = Path("bundle.zip"),
) -> None:
    """Put configurations, logs, records, summaries, graphs and the last dumps of a run into one archive,
    without the values of secret variables.
    """
    from mycelia.debug.bundle import write_bundle

    names = write_bundle(run, out)
    typer.echo(f"{out}: {len(names)} files" + (", first_bad.json" if "first_bad.json" in names else ""))


@app.command("profile", context_settings=_PASS_ON)
def profile_script(
    ctx: typer.Context,
    script: _Script,
    rows: Annotated[int, typer.Option(min=0, help="How many rows to show, the slowest first.")] = 30,
    by_signature: Annotated[bool, typer.Option(help="A row for each op and shape.")] = False,
    trace: Annotated[Path | None, typer.Option(help="Write a Chrome trace to this file.")] = None,
) -> None:
    """Run a script and tell where its time goes, op by op."""
    from mycelia.faces.compat import script as scripts
    from mycelia.profiler import Profiler

    if trace is not None and not trace.parent.is_dir():  # told now, not after a long run
        raise typer.BadParameter(f"there is no folder {trace.parent}", param_hint="--trace")
    profiler = Profiler(start_profile=False)
    try:
        with profiler:
            scripts.run(script, ctx.args)
    finally:
        typer.echo(f"{script}: {profiler.seconds:.3f} s")
        typer.echo(profiler.table(rows, by_signature))
        if trace is not None:
            profiler.export_chrome_tracing(trace)


def main() -> None:
    """Entry point of the `mycelia` command."""
    app()


if __name__ == "__main__":
    main()
