"""The bearer token that callers of the ports send."""

from __future__ import annotations

import hmac


class Token:
    """What callers must send as `Authorization: Bearer TOKEN`; None: nothing."""

    def __init__(self, token: str | None) -> None:
        self.needed = token is not None
        self._header = f"Bearer {token}".encode()

    def admits(self, header: str) -> bool:
        """Whether a caller with this header may come in; it takes the same time for every wrong one."""
        return not self.needed or hmac.compare_digest(header.encode(), self._header)
