"""The encryption blocks of MindIR and checkpoint files.

Plain data is cut in pieces of at most 64 MiB; each becomes: magic u32, for GCM a tag of 16 bytes, size i32 of
what follows, iv size i32 (16), iv, cipher size i32, cipher text; all little endian. GCM uses the first 12
bytes of the iv as its nonce.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from mycelia.io.reading import Bytes, MemoryBytes

BLOCK_SIZE = 64 << 20
_MAGIC = {"AES-GCM": 0x7F3A5ED8, "AES-CBC": 0x7F3A5ED9, "SM4-CBC": 0x7F3A5EDA}
_IV_SIZE, _TAG_SIZE, _NONCE_SIZE = 16, 16, 12
_KEY_SIZES = {"AES": (16, 24, 32), "SM4": (16,)}


def is_encrypted(start: bytes | memoryview) -> bool:
    """Whether data that begins with `start` (4 bytes or more) begins with an encryption block."""
    return len(start) >= 4 and int.from_bytes(start[:4], "little") in _MAGIC.values()


def check_key(key: bytes, mode: str, name: str) -> None:
    """Errors: TypeError, ValueError that name the argument (`name` is 'enc' or 'dec')."""
    if not isinstance(key, bytes):
        raise TypeError(f"'{name}_key' must be bytes, but got {type(key)}")
    if mode not in _MAGIC:
        raise ValueError(f"'{name}_mode' must be one of {', '.join(_MAGIC)}, but got {mode!r}")
    sizes = _KEY_SIZES[mode[:3]]
    if len(key) not in sizes:
        raise ValueError(
            f"'{name}_key' must have {' or '.join(map(str, sizes))} bytes for {mode}, but has {len(key)}"
        )


def _ciphers():
    try:
        from cryptography.hazmat.primitives import ciphers
        from cryptography.hazmat.primitives.ciphers import algorithms, modes
    except ImportError:
        raise ImportError(
            "encrypted files need the package 'cryptography': pip install 'mycelia-core[crypto]'"
        ) from None
    return ciphers, algorithms, modes


def _cipher(key: bytes, mode: str, iv: bytes, tag: bytes | None = None):
    ciphers, algorithms, modes = _ciphers()
    if mode == "AES-GCM":
        return ciphers.Cipher(algorithms.AES(key), modes.GCM(iv[:_NONCE_SIZE], tag))
    algorithm = algorithms.AES if mode == "AES-CBC" else algorithms.SM4
    return ciphers.Cipher(algorithm(key), modes.CBC(iv))


def encrypt_block(plain: bytes | memoryview, key: bytes, mode: str) -> bytes:
    """One block for at most 64 MiB of plain data."""
    iv = os.urandom(_IV_SIZE)
    encryptor = _cipher(key, mode, iv).encryptor()
    if mode == "AES-GCM":
        text = encryptor.update(plain) + encryptor.finalize()
        tag = encryptor.tag
    else:
        fill = 16 - len(plain) % 16  # PKCS#7
        text = encryptor.update(plain) + encryptor.update(bytes([fill]) * fill) + encryptor.finalize()
        tag = b""
    return b"".join(
        (
            struct.pack("<I", _MAGIC[mode]),
            tag,
            struct.pack("<ii", len(iv) + len(text) + 8, len(iv)),
            iv,
            struct.pack("<i", len(text)),
            text,
        )
    )


def encrypt(plain: bytes | memoryview, key: bytes, mode: str = "AES-GCM") -> bytes:
    """`plain` as encryption blocks."""
    check_key(key, mode, "enc")
    return b"".join(
        encrypt_block(plain[at : at + BLOCK_SIZE], key, mode) for at in range(0, len(plain), BLOCK_SIZE)
    )


def decrypt(data: bytes | Bytes, key: bytes, mode: str = "AES-GCM") -> memoryview:
    """The plain data of encryption blocks, which are decrypted one by one.

    Errors: ValueError for another mode, a wrong key, blocks that are cut off or changed.
    """
    check_key(key, mode, "dec")
    source = MemoryBytes(data) if isinstance(data, (bytes, memoryview)) else data
    plain, size = bytearray(len(source)), 0  # shorter than what it was made into
    for block in _decrypt_blocks(source, key, mode):
        plain[size : size + len(block)] = block
        size += len(block)
    return memoryview(plain)[:size]


def _decrypt_blocks(data: Bytes, key: bytes, mode: str) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        head = 4 + (_TAG_SIZE if mode == "AES-GCM" else 0)
        fixed = head + 8 + _IV_SIZE + 4
        if len(data) - at < fixed:
            raise ValueError(f"the encryption block at byte {at} is cut off")
        start = data.piece(at, at + fixed)
        (magic,) = struct.unpack_from("<I", start)
        if magic != _MAGIC[mode]:
            found = next((name for name, number in _MAGIC.items() if number == magic), None)
            raise ValueError(
                f"the data is encrypted with {found}, not with {mode}"
                if found
                else f"no encryption block at byte {at}: the data is not encrypted or damaged"
            )
        tag = start[4:head]
        rest, iv_size = struct.unpack_from("<ii", start, head)
        (size,) = struct.unpack_from("<i", start, fixed - 4)
        if iv_size != _IV_SIZE or rest != iv_size + size + 8 or not 0 <= size <= len(data) - at - fixed:
            raise ValueError(f"the encryption block at byte {at} is damaged or cut off")
        iv = start[head + 8 : head + 8 + _IV_SIZE]
        yield _decrypt_block(data.piece(at + fixed, at + fixed + size), key, mode, iv, tag)
        at += fixed + size


def _decrypt_block(text: bytes, key: bytes, mode: str, iv: bytes, tag: bytes) -> bytes:
    decryptor = _cipher(key, mode, iv, tag).decryptor()
    wrong = ValueError("decryption failed: wrong key, or the data was changed")
    if mode == "AES-GCM":
        from cryptography.exceptions import InvalidTag

        try:
            return decryptor.update(text) + decryptor.finalize()
        except InvalidTag:
            raise wrong from None
    if len(text) == 0 or len(text) % 16:
        raise wrong
    plain = decryptor.update(text) + decryptor.finalize()
    fill = plain[-1]
    if not 1 <= fill <= 16 or plain[-fill:] != bytes([fill]) * fill:
        raise wrong
    return plain[:-fill]
