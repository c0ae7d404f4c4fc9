"""A store beyond one server, which several hosts share: Redis or Valkey.

Rows of a cache are the fields of a hash named by the pipeline's digest, each with a checksum in front; a
bitmap beside it tells which there are. Keys end a day after their last use: no server knows whether another
one still needs them. A store that is slow or gone counts as empty: rows then come from the source.
"""

from __future__ import annotations

import struct
import time
import zlib

import numpy as np

from mycelia import errors, log
from mycelia_cache.settings import without_password

_CRC = struct.Struct("<I")
_TTL_S = 24 * 3600
_PAUSE_S = 5.0  # how long a store that failed is left alone
_TIMEOUT_S = 2.0
_PER_CALL = 512  # rows of one pipeline of commands


class RedisStore:
    """Rows in Redis. Errors: RuntimeError for an address that cannot be one, or without the package redis."""

    def __init__(self, address: str):
        try:
            import redis
        except ImportError:
            raise errors.runtime_error(
                "mycelia-cache", "--backend redis://... needs the package redis", hint="pip install redis"
            ) from None
        self.address = without_password(address)
        self._failures = (redis.RedisError, OSError)
        try:
            self._redis = redis.Redis.from_url(
                address, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
            )
        except ValueError:
            raise errors.runtime_error("mycelia-cache", f"--backend {self.address!r} is no address") from None
        self._resume_at = 0.0
        self._told = False

    def _tried(self, work, default):
        if time.monotonic() < self._resume_at:
            return default
        try:
            result = work()
        except self._failures as e:
            self._resume_at = time.monotonic() + _PAUSE_S
            if not self._told:
                self._told = True
                log.logger(__name__).warning("the store at %s does not answer: %s", self.address, e)
            return default
        self._told = False
        return result

    @staticmethod
    def _keys(digest: bytes) -> tuple[str, str, str]:
        name = f"mycelia:cache:{digest.hex()}"
        return f"{name}:rows", f"{name}:there", f"{name}:count"

    def put(self, digest: bytes, rows: list[tuple[int, bytes]]) -> None:
        """Store rows that are not there yet."""
        hash_key, map_key, _ = self._keys(digest)

        def work():
            for at in range(0, len(rows), _PER_CALL):
                pipe = self._redis.pipeline(transaction=False)
                for row, data in rows[at : at + _PER_CALL]:
                    pipe.hsetnx(hash_key, row, _CRC.pack(zlib.crc32(data)) + data)
                    pipe.setbit(map_key, row, 1)
                pipe.expire(hash_key, _TTL_S)
                pipe.expire(map_key, _TTL_S)
                pipe.execute()

        self._tried(work, None)

    def get(self, digest: bytes, rows: list[int]) -> list[bytes | None]:
        """The bytes of rows; None for those that are not there or are damaged."""
        hash_key, _, _ = self._keys(digest)

        def work():
            found = []
            for at in range(0, len(rows), _PER_CALL):
                found += self._redis.hmget(hash_key, rows[at : at + _PER_CALL])
            self._redis.expire(hash_key, _TTL_S)
            return found

        return [_intact(value) for value in self._tried(work, [None] * len(rows))]

    def present(self, digest: bytes, rows: np.ndarray) -> np.ndarray:
        """Which rows are there."""
        bits = self._tried(lambda: self._redis.get(self._keys(digest)[1]), None)
        there = np.zeros(len(rows), bool)
        if bits:
            table = np.unpackbits(np.frombuffer(bits, np.uint8))
            inside = (rows >= 0) & (rows < len(table))
            there[inside] = table[rows[inside]] == 1
        return there

    def set_count(self, digest: bytes, count: int) -> None:
        """All rows of a source without row numbers are there, so many."""
        self._tried(lambda: self._redis.set(self._keys(digest)[2], count, ex=_TTL_S), None)

    def count(self, digest: bytes) -> int | None:
        """How many rows a source without row numbers has, if all of them are there."""
        value = self._tried(lambda: self._redis.get(self._keys(digest)[2]), None)
        return None if value is None else int(value)


def _intact(value: bytes | None) -> bytes | None:
    if value is None or len(value) < _CRC.size:
        return None
    data = value[_CRC.size :]
    return data if zlib.crc32(data) == _CRC.unpack_from(value)[0] else None
