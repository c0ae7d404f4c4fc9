"""Live and ready over HTTP for a worker that runs alone: what Kubernetes asks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Probe:
    """Answers GET /v2/health/live with 200, and GET /v2/health/ready with what `ready` says."""

    def __init__(self, address: str) -> None:
        """address: "ip:port". Errors: RuntimeError."""
        probe = self
        self.ready: Callable[[], bool] = lambda: False

        class Handler(BaseHTTPRequestHandler):
            timeout = 5.0  # of a caller that says nothing

            def do_GET(self) -> None:
                known = {"/v2/health/live": lambda: True, "/v2/health/ready": probe.ready}.get(self.path)
                self.send_response(404 if known is None else 200 if known() else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_) -> None:
                """Probes come every few seconds: no line for each."""

        host, _, port = address.rpartition(":")
        try:
            self._server = ThreadingHTTPServer((host, int(port)), Handler)
        except (OSError, ValueError, OverflowError) as e:
            raise RuntimeError(f"cannot listen on {address}: {getattr(e, 'strerror', None) or e}") from None
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="serving-probe", daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
