"""The bearer tokens that callers of the ports send."""

from __future__ import annotations

import hmac


class Token:
    """What callers must send as `Authorization: Bearer TOKEN`; None: nothing. `others` are taken as well."""

    def __init__(self, token: str | None, *others: str | None) -> None:
        self.needed = token is not None
        self._headers = [f"Bearer {one}".encode() for one in (token, *others) if one is not None]

    def admits(self, header: str) -> bool:
        """Whether a caller with this header may come in; it takes the same time for every wrong one."""
        given = header.encode()
        return not self.needed or any([hmac.compare_digest(given, right) for right in self._headers])
