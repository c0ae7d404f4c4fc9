"""Servers on other hosts, over gRPC, and stores that several servers share."""

from __future__ import annotations

import datetime
import ipaddress
import os
import shutil
import subprocess
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia.dataset as ds
from mycelia import config
from mycelia_cache import admin, channel, commands, daemon, settings
from mycelia_cache import rows as form
from mycelia_cache.cli import app
from mycelia_cache.handle import RemoteHandle
from mycelia_cache.memory import Budget
from mycelia_cache.proto import cache_pb2 as pb
from mycelia_cache.protocol import Refused
from mycelia_cache.store import Store


@pytest.fixture
def remote(server, monkeypatch):
    """Let clients of this test take the server for one on another host."""

    def refuse(directory):
        raise channel.Unreachable("it is on another host")

    monkeypatch.setenv("MYCELIA_CACHE_TOKEN", daemon.token_of(server.port))
    monkeypatch.setattr(channel, "SocketChannel", refuse)
    config.reset("cache_token")
    yield server
    monkeypatch.undo()
    config.reset("cache_token")


class Rows:
    cache_key = "rows"
    asked = 0

    def __len__(self):
        return 90

    def __getitem__(self, i):
        type(self).asked += 1
        return np.full((3, 2), i, np.float32), f"row {i}"


def epochs(cache, count, batch=0):
    source = ds.GeneratorDataset(Rows(), ["x", "name"]).map(lambda x: x, "x", cache=cache)
    it = (source.batch(batch) if batch else source).create_tuple_iterator(num_epochs=count, output_numpy=True)
    return [[tuple(c.tolist() for c in row) for row in it] for _ in range(count)]


def test_pipelines_read_through_a_remote_server(remote):
    cache = remote.cache(prefetch_size=7, num_connections=3)
    Rows.asked = 0
    assert epochs(cache, 3) == epochs(None, 3)
    assert isinstance(cache.client._handle, RemoteHandle)
    assert cache.get_stat().num_mem_cached == 90 and cache.get_stat().num_hit == 180
    assert epochs(cache, 1, batch=8) == epochs(None, 1, batch=8)
    assert Rows.asked == 90 * 5, "the cached pipeline asked for each row once"


def test_text_lines_through_a_remote_server(remote, lines):
    cache = remote.cache()
    it = ds.TextFileDataset(lines, shuffle=False, cache=cache).create_tuple_iterator(
        output_numpy=True, num_epochs=2
    )
    assert [[str(r[0]) for r in it] for _ in range(2)] == [[f"line {i}" for i in range(100)]] * 2


def test_batches_of_rows_go_in_one_message(remote):
    way = channel.open_channel("127.0.0.1", remote.port)
    channel.hello(way)
    join = pb.Join(session=remote.session(), crc=1, digest=b"d" * 16, numbered=True)
    handle = RemoteHandle(way, way.call(pb.Request(join=join)).joined, pytest.fail, 20, 4)
    x = np.arange(500 * 3, dtype=np.int16).reshape(500, 3)
    handle.put_batch(np.arange(500), [x])
    handle.flush()
    order = np.random.default_rng(0).permutation(500)
    assert np.array_equal(handle.gather(order)[0], x[order])
    assert handle.gather(np.array([3, 1000])) is None
    way.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A directory with an authority and a certificate for 127.0.0.1, for both sides."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    directory = tmp_path_factory.mktemp("tls")
    now = datetime.datetime.now(datetime.UTC)

    def make(name, issuer, public, signer, *extensions):
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(public)
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1))
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def named(text):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    root, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    authority = (x509.BasicConstraints(ca=True, path_length=None), True)
    ca = make(named("authority"), named("authority"), root.public_key(), root, authority)
    alternative = (x509.SubjectAlternativeName([address]), False)
    cert = make(named("cache"), named("authority"), key.public_key(), root, alternative)
    (directory / "ca.pem").write_bytes(ca)
    (directory / "cert.pem").write_bytes(cert)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (directory / "key.pem").write_bytes(private)
    return str(directory)


def test_certificates_of_both_sides(make_server, certificates):
    server = make_server(tls=certificates)
    token = daemon.token_of(server.port)
    way = channel.GrpcChannel("127.0.0.1", server.port, token, certificates)
    assert channel.hello(way)
    way.close()
    plain = channel.GrpcChannel("127.0.0.1", server.port, token, "")
    with pytest.raises(channel.Unreachable):
        channel.hello(plain)
    plain.close()


def test_a_wrong_token_is_refused(server):
    way = channel.GrpcChannel("127.0.0.1", server.port, "guess", "")
    with pytest.raises(Refused, match="token"):
        channel.hello(way)
    way.close()


@pytest.mark.parametrize(
    "words", [["list"], ["info", "--json"], ["session"], ["destroy", "5"], ["stop"]], ids=" ".join
)
def test_commands_with_a_wrong_token_say_so_in_one_line(words, server, monkeypatch, capsys):
    def refuse(directory):
        raise channel.Unreachable("it is on another host")

    monkeypatch.setattr(channel, "SocketChannel", refuse)
    with config.context(cache_token="guess"):
        result = CliRunner().invoke(app, [*words, "-p", str(server.port)])
        assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
        (line,) = result.output.strip().splitlines()
        assert "the token is not this server's" in line and str(server.port) in line
        assert admin.main(["--list_sessions", "-p", str(server.port)]) == 1
        assert capsys.readouterr().out.strip().splitlines()[-1] == line


def test_a_restarted_remote_server_is_joined_anew(make_server, monkeypatch, warned):
    server = make_server(token="secret")

    def refuse(directory):
        raise channel.Unreachable("it is on another host")

    monkeypatch.setattr(channel, "SocketChannel", refuse)
    with config.context(cache_token="secret"):
        session = commands.new_session("127.0.0.1", server.port)
        private = ds.DatasetCache(None, port=server.port)
        named = ds.DatasetCache(session, port=server.port)
        bypassing = ds.DatasetCache(session, port=server.port, on_failure="bypass")
        right = epochs(private, 2)
        assert epochs(named, 2) == epochs(bypassing, 2) == right
        server.kill()
        server.again()
        server.wait_for(lambda: _answers(server.port))
        assert epochs(private, 2) == right
        assert private.get_stat().num_mem_cached == 90
        with pytest.raises(RuntimeError, match="session was not found"):
            epochs(named, 1)
        assert epochs(bypassing, 2) == right
        assert not [text for text in warned if "client" in text], "what was joined anew is not told of"


def _answers(port: int) -> bool:
    try:
        return commands.overview("127.0.0.1", port).pid > 0
    except commands.Failed:
        return False


def test_missing_certificates_are_said_in_one_line(tmp_path):
    with config.context(cache_tls=str(tmp_path)):
        result = CliRunner().invoke(app, ["list", "-p", "1025", "-h", "10.0.0.1"])
    assert result.exit_code == 1 and "a certificate of MYCELIA_CACHE_TLS cannot be read" in result.output


def test_a_password_of_a_store_is_not_shown():
    assert settings.without_password("redis://user:secret@host:1/0") == "redis://...@host:1/0"
    assert settings.without_password("redis://host") == "redis://host"


def test_other_hosts_need_a_token(server):
    with pytest.raises(RuntimeError, match="must be on the same host"):
        ds.DatasetCache(1, hostname="10.0.0.1")
    with pytest.raises(commands.Failed, match="MYCELIA_CACHE_TOKEN"):
        commands.settings(server.port, bind="0.0.0.0")


def test_a_remote_server_that_dies_leaves_the_source(make_server, monkeypatch, lines):
    server = make_server(token="secret")

    def refuse(directory):
        raise channel.Unreachable("it is on another host")

    monkeypatch.setattr(channel, "SocketChannel", refuse)
    with config.context(cache_token="secret"):
        session_way = channel.open_channel("127.0.0.1", server.port)
        session = session_way.call(pb.Request(new_session=pb.NewSession())).session.session
        it = ds.TextFileDataset(
            lines, shuffle=False, cache=ds.DatasetCache(session, port=server.port)
        ).create_tuple_iterator(output_numpy=True, num_epochs=2)
        got = [[str(r[0]) for r in it]]
        second = []
        for row in it:
            second.append(str(row[0]))
            if len(second) == 30:
                server.kill()
        assert [*got, second] == [[f"line {i}" for i in range(100)]] * 2
        session_way.close()


# ---- Redis -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def redis_address(tmp_path_factory):
    """A real Redis or Valkey server on a unix socket; skipped where none is installed."""
    pytest.importorskip("redis")
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    import redis

    directory = tmp_path_factory.mktemp("redis")
    path = os.path.join(str(directory), "s")
    if len(path) > 100:
        pytest.skip("the directory for temporary files has too long a name for a socket")
    command = [program, "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir",
               str(directory)]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                redis.Redis(unix_socket_path=path).ping()
                break
            except redis.RedisError:
                assert time.monotonic() < end and process.poll() is None, "redis-server does not start"
                time.sleep(0.05)
        yield f"unix://{path}"
    finally:
        process.kill()
        process.wait()


def test_two_servers_share_rows_through_redis(make_server, redis_address, lines):
    first, second = (make_server(backend=redis_address) for _ in range(2))
    Rows.asked = 0
    expected = epochs(None, 2)
    assert epochs(first.cache(), 2) == expected and Rows.asked == 90 * 3
    cache = second.cache()
    assert epochs(cache, 2) == expected and Rows.asked == 90 * 3, "the second host computed nothing"
    assert cache.get_stat().num_mem_cached == 90, "and has them in its own memory now"
    texts = [f"line {i}" for i in range(100)]
    for server in (first, second):
        cache = server.cache()
        it = ds.TextFileDataset(lines, shuffle=False, cache=cache).create_tuple_iterator(output_numpy=True)
        assert [str(r[0]) for r in it] == texts
    assert cache.get_stat().num_miss == 0


def test_damaged_values_in_redis_are_no_rows(make_server, redis_address):
    import redis

    server = make_server(backend=redis_address)
    Rows.cache_key = "damaged rows"
    try:
        epochs(server.cache(), 1)
        store = redis.Redis(unix_socket_path=redis_address.removeprefix("unix://"))
        for key in store.keys("mycelia:cache:*:rows"):
            for number, value in store.hgetall(key).items():
                store.hset(key, number, value[:-8] + b"damaged!")
        assert epochs(make_server(backend=redis_address).cache(), 2) == epochs(None, 2)
    finally:
        Rows.cache_key = "rows"


def test_a_store_that_is_gone_counts_as_empty(make_server, tmp_path):
    pytest.importorskip("redis")
    server = make_server(backend=f"unix://{tmp_path}/nobody")
    assert epochs(server.cache(), 2) == epochs(None, 2)
    assert commands.overview("127.0.0.1", server.port).pid == server.pid


def test_an_address_that_is_none_is_refused(cache_dir):
    pytest.importorskip("redis")
    with pytest.raises(commands.Failed, match="is no address"):
        commands.start(commands.settings(50052, backend="nonsense"))


def test_rows_of_one_length_come_as_one_block():
    store = Store(Budget(1 << 20))
    layout = form.layout_of([np.asarray(0)])
    block = form.encoded_block(np.arange(5), [np.arange(5)], layout)
    lengths = np.full(5, layout.size, np.uint64)
    assert len(store.put(1, np.arange(5), lengths, block.tobytes())) == 5
    got, data = store.get(np.array([4, 9, 0]))
    assert got.tolist() == [layout.size, 0, layout.size]
    assert form.decoded(data, layout.size, 0, layout.size)[0] == 0
