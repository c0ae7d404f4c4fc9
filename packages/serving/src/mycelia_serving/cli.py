"""`mycelia serving` and `mycelia-serving`: commands of Mycelia Serving."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: no word in brackets is taken for markup
    help="A model server.",
)

Pid = Annotated[int | None, typer.Option("--pid", help="Process of the server, if there are several.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MaxBatchSize = Annotated[int, typer.Option("--max-batch-size", help="Of models whose batch is open.")]
MaxBatchDelayMs = Annotated[
    float, typer.Option("--max-batch-delay-ms", help="How long a batch waits to become full.")
]
DrainSeconds = Annotated[
    float, typer.Option("--drain-seconds", help="How long running requests may take at the end.")
]
DeviceType = Annotated[str, typer.Option("--device-type", help="CPU, GPU or Ascend.")]
Servables = Annotated[list[str], typer.Option("--servable", "-s", help="NAME or NAME:VERSION.")]
ServableName = Annotated[str, typer.Argument(help="NAME or NAME:VERSION.")]
ConfigTimeout = Annotated[
    float, typer.Option("--config-timeout-s", help="How long the import of servable_config.py may take.")
]
Token = Annotated[
    str,
    typer.Option(
        "--token",
        envvar="MYCELIA_SERVING_TOKEN",
        help="What callers send; better by the variable or a file, as other users see arguments.",
    ),
]
TokenFile = Annotated[str, typer.Option("--token-file", help="File with the token.")]
Tls = Annotated[bool, typer.Option("--tls", help="TLS, with the authorities that the system knows.")]
TlsCa = Annotated[str, typer.Option("--tls-ca", help="TLS; PEM file of the server's authority.")]
TlsCert = Annotated[str, typer.Option("--tls-cert", help="TLS; PEM file of this client's certificate.")]
TlsKey = Annotated[str, typer.Option("--tls-key", help="PEM file of its key.")]
Address = Annotated[str, typer.Option("--address", "-a", help="gRPC address of the server.")]


@app.callback()
def main() -> None:
    """A model server."""


@app.command()
def version() -> None:
    """Print the version of mycelia-serving."""
    import mycelia_serving

    typer.echo(mycelia_serving.__version__)


def _tried(work):
    """The result of a command, or its message and exit code 1."""
    try:
        return work()
    except RuntimeError as e:
        typer.echo(str(e), err=True)
        raise typer.Exit(1) from None


@app.command()
def start(
    servable_dir: Annotated[
        str, typer.Option("--servable-dir", "-d", help="Directory with a folder per servable.")
    ] = "",
    servable: Annotated[
        list[str] | None,
        typer.Option("--servable", "-s", help="NAME or NAME:VERSION; again for more. None: workers join."),
    ] = None,
    grpc: Annotated[
        str, typer.Option("--grpc", help="Address of the gRPC port, ip:port or unix:path; empty: none.")
    ] = "127.0.0.1:5500",
    rest: Annotated[str, typer.Option("--rest", help="Address of the REST port; empty: none.")] = "",
    workers: Annotated[
        int, typer.Option("--workers", "-w", help="Worker processes per servable; 0: in this process.")
    ] = 1,
    devices: Annotated[str, typer.Option("--devices", help="Device ids, as 0,1: a worker for each.")] = "",
    device_type: DeviceType = "",
    scale: Annotated[
        str, typer.Option("--scale", help="LEAST-MOST workers, by how long requests wait.")
    ] = "",
    max_msg_mb: Annotated[int, typer.Option("--max-msg-mb", help="Largest message in MB, 1 to 512.")] = 100,
    max_batch_size: MaxBatchSize = 32,
    max_batch_delay_ms: MaxBatchDelayMs = 0.0,
    max_enqueued_requests: Annotated[
        int, typer.Option("--max-enqueued-requests", help="Requests that may wait; others are refused.")
    ] = 10_000,
    worker_timeout_s: Annotated[
        float, typer.Option("--worker-timeout-s", help="A worker busy for longer is killed; 0: never.")
    ] = 0.0,
    version_policy: Annotated[
        str, typer.Option("--version-policy", help="latest, latest:N, all or specific:N,M.")
    ] = "",
    poll_seconds: Annotated[
        float, typer.Option("--poll-seconds", help="Look for new versions so often; 0: never.")
    ] = 0.0,
    tls_cert: Annotated[str, typer.Option("--tls-cert", help="PEM file of the certificate.")] = "",
    tls_key: Annotated[str, typer.Option("--tls-key", help="PEM file of its key.")] = "",
    tls_ca: Annotated[str, typer.Option("--tls-ca", help="PEM file of the clients' authority.")] = "",
    tls_verify_client: Annotated[
        bool, typer.Option("--tls-verify-client", help="Only clients with a certificate.")
    ] = False,
    token: Token = "",
    token_file: TokenFile = "",
    allow_admin: Annotated[
        bool, typer.Option("--allow-admin", help="Callers may load and unload models.")
    ] = False,
    admin_token: Annotated[
        str,
        typer.Option(
            "--admin-token",
            envvar="MYCELIA_SERVING_ADMIN_TOKEN",
            help="Callers that send this may load and unload models.",
        ),
    ] = "",
    admin_token_file: Annotated[
        str, typer.Option("--admin-token-file", help="File with the admin token.")
    ] = "",
    config_timeout_s: ConfigTimeout = 60.0,
    drain_seconds: DrainSeconds = 30.0,
    master: Annotated[
        str, typer.Option("--master", help="Address at which workers of other hosts join.")
    ] = "",
    join: Annotated[str, typer.Option("--join", help="Be a worker of the master at this address.")] = "",
    etcd: Annotated[
        str, typer.Option("--etcd", help="host:port[/CLUSTER] of etcd: one of several servers is master.")
    ] = "",
    spare: Annotated[
        bool, typer.Option("--spare/--no-spare", help="A process that waits to replace a lost worker.")
    ] = True,
    log_dir: Annotated[str, typer.Option("--log-dir", help="A log file per worker in here.")] = "",
    request_log: Annotated[
        str, typer.Option("--request-log", help="A JSON line per request to this file; -: standard error.")
    ] = "",
) -> None:
    """Serve servables until SIGTERM or Ctrl-C."""
    options = dict(locals())
    from mycelia_serving.actions import serve

    if join:
        _tried(lambda: serve.be_worker(options))
    else:
        _tried(lambda: serve.start(options))


@app.command()
def worker(
    servable_dir: Annotated[
        str, typer.Option("--servable-dir", "-d", help="Directory with a folder per servable.")
    ],
    servable: Servables,
    join: Annotated[
        str, typer.Option("--join", help="Address of the master, or several with commas.")
    ] = "127.0.0.1:6100",
    device: Annotated[int, typer.Option("--device", help="Device id.")] = 0,
    device_type: DeviceType = "",
    max_batch_size: MaxBatchSize = 32,
    max_batch_delay_ms: MaxBatchDelayMs = 0.0,
    probe: Annotated[
        str, typer.Option("--probe", help="ip:port for GET /v2/health/live and /v2/health/ready.")
    ] = "",
    config_timeout_s: ConfigTimeout = 60.0,
    drain_seconds: DrainSeconds = 30.0,
    etcd: Annotated[
        str, typer.Option("--etcd", help="host:port[/CLUSTER] of etcd, which knows the master.")
    ] = "",
) -> None:
    """Run a servable for a master elsewhere until SIGTERM or Ctrl-C."""
    options = dict(locals())
    from mycelia_serving.actions import serve

    _tried(lambda: serve.be_worker(options))


@app.command()
def deploy(
    servable_dir: Annotated[
        str, typer.Option("--servable-dir", "-d", help="Directory with a folder per servable, on every host.")
    ],
    servable: Servables,
    engine: Annotated[str, typer.Option("--engine", help="ray")] = "ray",
    cluster: Annotated[
        str, typer.Option("--cluster", help="Address of a running Ray, or auto; empty: one of its own.")
    ] = "",
    rest: Annotated[str, typer.Option("--rest", help="Address of the REST port.")] = "127.0.0.1:8000",
    route_prefix: Annotated[str, typer.Option("--route-prefix", help="Of the URLs.")] = "/",
    replicas: Annotated[int, typer.Option("--replicas", help="How many.")] = 1,
    scale: Annotated[str, typer.Option("--scale", help="LEAST-MOST replicas, by load.")] = "",
    cpus: Annotated[float, typer.Option("--cpus", help="Of each replica.")] = 1.0,
    device_type: DeviceType = "",
    max_batch_size: MaxBatchSize = 32,
    max_batch_delay_ms: MaxBatchDelayMs = 0.0,
    max_ongoing_requests: Annotated[
        int, typer.Option("--max-ongoing-requests", help="Of each replica.")
    ] = 128,
    drain_seconds: DrainSeconds = 30.0,
) -> None:
    """Run servables on another engine: Ray Serve."""
    options = dict(locals())
    from mycelia_serving.actions import serve

    _tried(lambda: serve.deploy(options))


@app.command()
def status(pid: Pid = None, json: AsJson = False) -> None:
    """Show servables, versions and workers of a running server."""
    from mycelia_serving.actions import control

    _tried(lambda: control.show_status(pid, json))


@app.command()
def models(pid: Pid = None, json: AsJson = False) -> None:
    """Show the methods of what is served, with inputs and outputs."""
    from mycelia_serving.actions import control

    _tried(lambda: control.show_models(pid, json))


@app.command()
def load(servable: ServableName, pid: Pid = None) -> None:
    """Serve a version, or look for newer ones."""
    from mycelia_serving.actions import control, names

    name, number = _tried(lambda: names.split_name(servable))
    _tried(lambda: control.command(pid, "load", name=name, version=number))


@app.command()
def unload(servable: ServableName, pid: Pid = None) -> None:
    """End a version, or all, when their requests are answered."""
    from mycelia_serving.actions import control, names

    name, number = _tried(lambda: names.split_name(servable))
    _tried(lambda: control.command(pid, "unload", name=name, version=number))


@app.command()
def scale(target: Annotated[str, typer.Argument(help="NAME=COUNT.")], pid: Pid = None) -> None:
    """Have so many workers of a servable."""
    from mycelia_serving.actions import control, names

    name, count = _tried(lambda: names.split_target(target))
    _tried(lambda: control.command(pid, "scale", name=name, count=count))


@app.command()
def drain(
    seconds: Annotated[float, typer.Option("--seconds", help="How long to wait.")] = 30.0, pid: Pid = None
) -> None:
    """Refuse new requests and wait for those that run; the server stays."""
    from mycelia_serving.actions import control

    if not _tried(lambda: control.command(pid, "drain", seconds=seconds)):
        typer.echo("some requests still run", err=True)
        raise typer.Exit(1)


@app.command()
def stop(
    now: Annotated[bool, typer.Option("--now", help="Do not wait for requests that run.")] = False,
    pid: Pid = None,
) -> None:
    """Stop a running server."""
    from mycelia_serving.actions import control

    _tried(lambda: control.stop(pid, now))


@app.command()
def call(
    method: Annotated[str, typer.Argument(help="SERVABLE.METHOD or SERVABLE:VERSION.METHOD.")],
    instances: Annotated[str, typer.Argument(help="JSON: one object, or a list of them; - reads it.")],
    address: Address = "127.0.0.1:5500",
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds.")] = 60.0,
    dtype: Annotated[str, typer.Option("--dtype", help="Of all numbers.")] = "",
    token: Token = "",
    token_file: TokenFile = "",
    tls: Tls = False,
    tls_ca: TlsCa = "",
    tls_cert: TlsCert = "",
    tls_key: TlsKey = "",
) -> None:
    """Call a method and print its answer as JSON."""
    options = dict(locals())
    from mycelia_serving.actions import call

    _tried(lambda: call.call(method, instances, timeout, dtype, options))


@app.command()
def bench(
    method: Annotated[str, typer.Argument(help="SERVABLE.METHOD or SERVABLE:VERSION.METHOD.")],
    instances: Annotated[str, typer.Argument(help="JSON: one object, or a list of them; - reads it.")],
    address: Address = "127.0.0.1:5500",
    seconds: Annotated[float, typer.Option("--seconds", help="How long.")] = 5.0,
    concurrency: Annotated[int, typer.Option("--concurrency", "-c", help="Requests at once.")] = 8,
    dtype: Annotated[str, typer.Option("--dtype", help="Of all numbers.")] = "",
    json: AsJson = False,
    token: Token = "",
    token_file: TokenFile = "",
    tls: Tls = False,
    tls_ca: TlsCa = "",
    tls_cert: TlsCert = "",
    tls_key: TlsKey = "",
) -> None:
    """Send the same request again and again, and print requests/s and latencies."""
    options = dict(locals())
    from mycelia_serving.actions import call

    _tried(lambda: call.bench(method, instances, seconds, concurrency, dtype, json, options))
