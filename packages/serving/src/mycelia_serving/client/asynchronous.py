"""The client for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from mycelia_serving.client.calls import (
    OPTIONS,
    PREDICT,
    Outcome,
    SSLConfig,
    Target,
    check_timeout,
    outcome,
    rpc_error,
)


class AsyncClient:
    """Calls one method of a servable from coroutines; parameters and errors as of `Client`.

    async with AsyncClient("127.0.0.1:5500", "add", "add_common") as client:
        await client.infer({"x1": x1, "x2": x2})
    """

    def __init__(
        self,
        address: str | Sequence[str] = "",
        servable_name: str = "",
        method_name: str = "",
        version_number: int = 0,
        ssl_config: SSLConfig | None = None,
        *,
        timeout: float | None = None,
        retry: int = 0,
        token: str | None = None,
        **old,
    ) -> None:
        self._target = Target(
            address, servable_name, method_name, version_number, ssl_config, old, timeout, retry, token
        )
        self._channels: list | None = None

    async def infer(self, instances, *, timeout: float | None = None, priority: int = 0) -> Outcome:
        """Answers instances; see `Client.infer`."""
        import grpc

        target = self._target
        seconds = target.timeout if timeout is None else check_timeout(timeout)
        end = None if seconds is None else time.monotonic() + seconds
        body, headers = target.body(instances), target.headers(priority)
        calls = self._connect()
        attempt = 0
        while True:
            index = target.next_address()
            left = None if end is None else max(end - time.monotonic(), 0.001)
            try:
                reply = await calls[index](body, timeout=left, metadata=headers)
            except grpc.RpcError as error:
                target.note(index, error)
                pause = target.pause(attempt, error)
                if pause is None or (end is not None and time.monotonic() + pause >= end):
                    return rpc_error(error)
                attempt += 1
                await asyncio.sleep(pause)
            else:
                target.note(index, None)
                return outcome(reply)

    def _connect(self) -> list:
        """The calls of all addresses, in the running loop."""
        if self._channels is None:
            import grpc

            ssl = self._target.ssl_config
            credentials = None if ssl is None else ssl.credentials()
            self._channels = [
                grpc.aio.insecure_channel(address, OPTIONS)
                if credentials is None
                else grpc.aio.secure_channel(address, credentials, OPTIONS)
                for address in self._target.addresses
            ]
            self._calls = [channel.unary_unary(PREDICT) for channel in self._channels]
        return self._calls

    async def close(self) -> None:
        """End the connections."""
        channels, self._channels = self._channels or [], None
        for channel in channels:
            await channel.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_) -> None:
        await self.close()
