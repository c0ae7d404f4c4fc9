"""Encrypted MindRecord files, and the settings of the encryption.

A file becomes blocks: i32 big endian size, an encryption block of `io/crypto.py`; a size of 0 ends them; then
7 characters of the mode and `ENCRYPT`.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable

from mycelia.engine.base import errors
from mycelia.io import crypto
from mycelia.io.reading import damaged

_END = b"ENCRYPT"
_MODES = ("AES-GCM",)
_OWN = "UDF-ENC"  # stands for a function of the user's
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


def _mode(owner: str, name: str, mode) -> str | Callable:
    if callable(mode):
        return mode
    if not isinstance(mode, str):
        raise errors.value_error(owner, f"The input {name} is not str.")
    if mode not in _MODES:
        raise errors.value_error(owner, f"The input {name} is invalid.", hint="use 'AES-GCM'")
    return mode


def set_enc_mode(enc_mode: str | Callable = "AES-GCM") -> None:
    """How files are encrypted: 'AES-GCM', or a function ``(file, size, encrypted_file, key)`` that writes one
    open file into another.
    """
    _state["enc_mode"] = _mode("set_enc_mode", "enc_mode", enc_mode)


def get_enc_mode() -> str | Callable:
    """How files are encrypted."""
    return _state["enc_mode"]


def set_dec_mode(dec_mode: str | Callable | None = "AES-GCM") -> None:
    """How files are decrypted: 'AES-GCM', None for the mode of the encryption, or a function
    ``(encrypted_file, size, file, key)``; 11 bytes behind what was written are counted in the size.
    """
    _state["dec_mode"] = None if dec_mode is None else _mode("set_dec_mode", "dec_mode", dec_mode)


def get_dec_mode() -> str | Callable | None:
    """How files are decrypted; None: as they were encrypted."""
    return _state["dec_mode"]


def check_settings() -> None:
    """Errors: ValueError, ImportError when files cannot be encrypted with the present key and mode."""
    if not callable(_state["enc_mode"]):
        crypto.encrypt(b"", _state["key"].encode(), _state["enc_mode"])


def encrypt_file(source, target) -> None:
    """Rewrite an open plain file into another one, encrypted with the present key and mode."""
    key, mode = _state["key"].encode(), _state["enc_mode"]
    source.seek(0)
    if callable(mode):
        mode(source, os.fstat(source.fileno()).st_size, target, _state["key"])
        target.write(struct.pack(">i", 0) + _OWN.encode() + _END)
        return
    crypto.check_key(key, mode, "enc")
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
            path,
            "The mindrecord file is encrypted. You need to configure mindrecord.set_enc_key and set_dec_mode",
        )
    with open(path, "rb") as file:
        data = memoryview(file.read())
    mode = bytes(data[-14:-7]).decode("ascii", "replace")
    wanted = _state["dec_mode"] or _state["enc_mode"]
    if mode == _OWN and _state["dec_mode"] is None:
        raise errors.runtime_error(
            path, "the file is encrypted by a function", hint="give its inverse to set_dec_mode"
        )
    if mode in (*_MODES, _OWN) and mode != (_OWN if callable(wanted) else wanted):
        raise errors.runtime_error(path, f"the file is encrypted with {mode}, not as set_dec_mode says")
    if mode == _OWN:
        plain = io.BytesIO()
        with open(path, "rb") as file:
            wanted(file, len(data) - len(_END), plain, _state["key"])
        return plain.getvalue()
    if mode not in _MODES:
        raise damaged(path, f"the file is encrypted with {mode!r}, which is not known")
    parts, at, end = [], 0, len(data) - 14
    while True:
        size = struct.unpack_from(">i", data, at)[0] if at + 4 <= end else -1
        at += 4
        if size == 0 and at == end:
            return b"".join(parts)
        if size <= 0 or size > end - at:
            raise damaged(path, f"the encrypted blocks are damaged at byte {at - 4}")
        try:
            parts.append(crypto.decrypt(data[at : at + size], _state["key"].encode(), mode))
        except ValueError as e:
            raise errors.runtime_error(path, str(e)) from None
        at += size
