"""Small rows in a Redis server on this host, put and fetched a batch at a time, in the quicker of two ways:
a pipeline of single commands, or MSET and MGET."""

import atexit
import shutil
import subprocess
import time

import numpy as np
import redis
from data_files import BATCH, ROWS, free_port, not_run
from peers import FILES, Items, per_item


def serve() -> tuple[redis.Redis, int]:
    """A client, and the process of its server, which ends with this one."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(FILES)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    atexit.register(server.kill)
    client = redis.Redis(port=port)
    for _ in range(200):
        try:
            client.ping()
            break
        except redis.ConnectionError:
            time.sleep(0.05)
    return client, server.pid


def cases(threads: int):
    if shutil.which("redis-server") is None:
        return lambda case: not_run(f"redis, {case}", "there is no redis-server")
    client, _ = serve()  # a child: its CPU time is counted without being named
    table = np.random.default_rng(0).integers(0, 1 << 30, (ROWS, 32)).astype(np.int32)
    rows = [(f"row:{k}", row.tobytes()) for k, row in enumerate(table)]

    batches = [rows[at : at + BATCH] for at in range(0, ROWS, BATCH)]

    def put() -> int:
        for batch in batches:
            pipeline = client.pipeline(transaction=False)
            for key, value in batch:
                pipeline.set(key, value)
            pipeline.execute()
        return ROWS

    def put_at_once() -> int:
        for batch in batches:
            client.mset(dict(batch))
        return ROWS

    def get() -> int:
        for batch in batches:
            pipeline = client.pipeline(transaction=False)
            for key, _ in batch:
                pipeline.get(key)
            np.stack([np.frombuffer(value, np.int32) for value in pipeline.execute()])
        return ROWS

    def get_at_once() -> int:
        for batch in batches:
            found = client.mget([key for key, _ in batch])
            np.stack([np.frombuffer(value, np.int32) for value in found])
        return ROWS

    def make(case: str) -> Items | None:
        if not case.startswith("cache "):
            return None
        put()
        ways = (get, get_at_once) if "get" in case else (put, put_at_once)
        return min(map(Items, ways), key=lambda way: per_item(way, 0.3))

    return make
