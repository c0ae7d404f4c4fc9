"""The client for ordinary threads."""

from __future__ import annotations

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


class Client:
    """Calls one method of a servable.

    address: "ip:port" or "unix:path", or a list of such: requests go to them in turn.
    servable_name, method_name, version_number: what is called; version 0 is the newest that runs.
    ssl_config: TLS. timeout: seconds for an answer. token: sent as a bearer token.
    retry: how often a request is sent again that no server has started.
    `Client(ip, port, servable_name, method_name, version_number=0)` means the same.
    Errors: RuntimeError that names a parameter of a wrong type.
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
        import grpc

        self._target = Target(
            address, servable_name, method_name, version_number, ssl_config, old, timeout, retry, token
        )
        self._grpc = grpc
        ssl = self._target.ssl_config
        credentials = None if ssl is None else ssl.credentials()
        self._channels = [
            grpc.insecure_channel(address, OPTIONS)
            if credentials is None
            else grpc.secure_channel(address, credentials, OPTIONS)
            for address in self._target.addresses
        ]
        self._calls = [channel.unary_unary(PREDICT) for channel in self._channels]

    def infer(self, instances, *, timeout: float | None = None, priority: int = 0) -> Outcome:
        """Answers instances: a dict of input name -> value, or a list or tuple of such.

        Values: numpy arrays and numbers, int, float, bool (sent as arrays of one element), str, bytes.
        Returns a list with a dict for each instance, output name -> value, or {"error": text} for one that
        failed; {"error": text} if the request failed.
        timeout: instead of the client's. priority: higher goes first.
        Errors: RuntimeError for instances or values of a wrong type.
        """
        return self.infer_async(instances, timeout=timeout, priority=priority).result()

    def infer_async(self, instances, *, timeout: float | None = None, priority: int = 0) -> InferFuture:
        """Sends the request; `.result()` waits for what `infer` would return."""
        target = self._target
        seconds = target.timeout if timeout is None else check_timeout(timeout)
        return InferFuture(self, target.body(instances), target.headers(priority), seconds)

    def close(self) -> None:
        """End the connections."""
        for channel in self._channels:
            channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_) -> None:
        self.close()


class InferFuture:
    """The answer to a request that is under way."""

    def __init__(self, client: Client, body: bytes, headers: tuple, seconds: float | None) -> None:
        self._client = client
        self._body = body
        self._headers = headers
        self._end = None if seconds is None else time.monotonic() + seconds
        self._attempt = 0
        self._outcome: Outcome | None = None
        self._send()

    def _send(self) -> None:
        client = self._client
        self._index = client._target.next_address()
        left = None if self._end is None else max(self._end - time.monotonic(), 0.001)
        self._call = client._calls[self._index].future(self._body, timeout=left, metadata=self._headers)

    def result(self) -> Outcome:
        """Waits; see `Client.infer`."""
        while self._outcome is None:
            target = self._client._target
            error = None
            try:
                self._outcome = outcome(self._call.result())
            except self._client._grpc.FutureCancelledError:
                self._outcome = {"error": "Grpc Error, (1, 'cancelled'), cancelled by this client"}
            except self._client._grpc.RpcError as failure:
                error = failure
                pause = target.pause(self._attempt, error)
                if pause is None or (self._end is not None and time.monotonic() + pause >= self._end):
                    self._outcome = rpc_error(error)
                else:
                    target.note(self._index, error)
                    self._attempt += 1
                    time.sleep(pause)
                    self._send()
                    continue
            target.note(self._index, error)
        return self._outcome

    def done(self) -> bool:
        """Whether `result` would not wait for the server."""
        return self._outcome is not None or self._call.done()

    def cancel(self) -> None:
        """Tell the server that nobody waits."""
        self._call.cancel()
