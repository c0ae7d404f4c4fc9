"""Encrypted MindRecord files, and the settings of the encryption.

A file becomes blocks: i32 big endian size, an encryption block of `io/crypto.py`; a size of 0 ends them; then
7 characters of the mode and `ENCRYPT`.
"""

from __future__ import annotations

import os
import struct

from mycelia import errors
from mycelia.io import crypto
from mycelia.mindrecord import exceptions

_END = b"ENCRYPT"
_MODES = ("AES-GCM",)
_state: dict = {"key": None, "enc_mode": "AES-GCM", "dec_mode": None}


def set_enc_key(enc_key: str | None) -> None:
    """The key (16, 24 or 32 characters) of all MindRecord files from now on; None: files are plain."""
    if enc_key is not None and not isinstance(enc_key, str):
        raise errors.value_error("set_enc_key", "The input enc_key is not str.")
    if enc_key is not None and len(enc_key) not in (16, 24, 32):
        raise errors.value_error("set_enc_key", "The length of input enc_key is not 16, 24, 32.")
    _state["key"] = enc_key


def get_enc_key() -> str | None:
    """The key, or None."""
    return _state["key"]


def _mode(owner: str, name: str, mode) -> str:
    if callable(mode):
        raise errors.error(
            errors.NotSupportedError, owner, f"{name} as a function is not built; 'AES-GCM' is"
        )
    if not isinstance(mode, str):
        raise errors.value_error(owner, f"The input {name} is not str.")
    if mode not in _MODES:
        raise errors.value_error(owner, f"The input {name} is invalid.", hint="use 'AES-GCM'")
    return mode


def set_enc_mode(enc_mode: str = "AES-GCM") -> None:
    """How files are encrypted: 'AES-GCM'."""
    _state["enc_mode"] = _mode("set_enc_mode", "enc_mode", enc_mode)


def get_enc_mode() -> str:
    """How files are encrypted."""
    return _state["enc_mode"]


def set_dec_mode(dec_mode: str | None = "AES-GCM") -> None:
    """How files are decrypted: 'AES-GCM', or None for the mode of the encryption."""
    _state["dec_mode"] = None if dec_mode is None else _mode("set_dec_mode", "dec_mode", dec_mode)


def get_dec_mode() -> str | None:
    """How files are decrypted; None: as they were encrypted."""
    return _state["dec_mode"]


def check_settings() -> None:
    """Errors: ValueError, ImportError when files cannot be encrypted with the present key and mode."""
    crypto.encrypt(b"", _state["key"].encode(), _state["enc_mode"])


def encrypt_file(source, target) -> None:
    """Rewrite an open plain file into another one, encrypted with the present key and mode."""
    key, mode = _state["key"].encode(), _state["enc_mode"]
    crypto.check_key(key, mode, "enc")
    source.seek(0)
    while piece := source.read(crypto.BLOCK_SIZE):
        block = crypto.encrypt_block(piece, key, mode)
        target.write(struct.pack(">i", len(block)) + block)
    target.write(struct.pack(">i", 0) + mode.encode() + _END)


def is_encrypted(path: str) -> bool:
    """Whether the file ends as an encrypted one does."""
    if os.path.getsize(path) < len(_END):
        return False
    with open(path, "rb") as file:
        file.seek(-len(_END), os.SEEK_END)
        return file.read() == _END


def read_plain(path: str) -> bytes:
    """The plain content of an encrypted file.

    Errors: RuntimeError without a key, or when the key is wrong or the file is damaged.
    """
    if _state["key"] is None:
        raise errors.runtime_error(
            path, "the file is encrypted", hint="give its key to mindrecord.set_enc_key"
        )
    with open(path, "rb") as file:
        data = memoryview(file.read())
    mode = bytes(data[-14:-7]).decode("ascii", "replace")
    if mode not in _MODES:
        raise exceptions.damaged(path, f"the file is encrypted with {mode!r}, which is not known")
    parts, at, end = [], 0, len(data) - 14
    while True:
        size = struct.unpack_from(">i", data, at)[0] if at + 4 <= end else -1
        at += 4
        if size == 0 and at == end:
            return b"".join(parts)
        if size <= 0 or size > end - at:
            raise exceptions.damaged(path, f"the encrypted blocks are damaged at byte {at - 4}")
        try:
            parts.append(crypto.decrypt(data[at : at + size], _state["key"].encode(), mode))
        except ValueError as e:
            raise errors.runtime_error(path, str(e)) from None
        at += size
