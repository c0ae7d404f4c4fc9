"""AES-GCM of the runtime: published vectors, another implementation, and models that were changed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite import runtime
from mycelia_lite.converter import convert, trial

CRYPTO = Path(__file__).resolve().parents[2] / "native" / "src" / "crypto"

# McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B: key, nonce, plain, cipher text, tag
_PLAIN = (
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255"
)
_KEY, _NONCE = "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888"
VECTORS = [
    ("00" * 16, "00" * 12, "", "", "58e2fccefa7e3061367f1d57a4e7455a"),
    ("00" * 16, "00" * 12, "00" * 16, "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"),
    (
        _KEY, _NONCE, _PLAIN,
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
        "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985",
        "4d5c2af327cd64a62cf35abd2ba6fab4",
    ),
    ("00" * 24, "00" * 12, "00" * 16, "98e7247c07f0fe411c267e4384b0f600", "2ff58d80033927ab8ef4d4587514f0fb"),
    ("00" * 32, "00" * 12, "00" * 16, "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"),
]  # fmt: skip


def seal(key: bytes, nonce: bytes, plain: bytes) -> tuple[bytes, bytes]:
    data, tag = ctypes.create_string_buffer(plain, len(plain) + 1), ctypes.create_string_buffer(16)
    runtime.check(
        runtime.library().MSEncryptInPlace(key, len(key), nonce, ctypes.addressof(data), len(plain), tag)
    )
    return data.raw[: len(plain)], tag.raw


@pytest.mark.parametrize(("key", "nonce", "plain", "text", "tag"), VECTORS)
def test_published_vectors(key, nonce, plain, text, tag):
    found = seal(*map(bytes.fromhex, (key, nonce, plain)))
    assert tuple(part.hex() for part in found) == (text, tag)


PROGRAM = """
#include <cstdio>
#include <cstring>
#include <vector>
#include "gcm.h"
using namespace mycelia::lite;
// Reads sizes of key and text, key, nonce, text; writes cipher text and tag; opens it again.
int main() {
  unsigned key_bytes = 0, size = 0;
  while (std::fread(&key_bytes, 4, 1, stdin) == 1) {
    if (std::fread(&size, 4, 1, stdin) != 1) return 1;
    std::vector<uint8_t> key(key_bytes), nonce(12), text(size + 1);
    if (std::fread(key.data(), 1, key_bytes, stdin) != key_bytes ||
        std::fread(nonce.data(), 1, 12, stdin) != 12 || std::fread(text.data(), 1, size, stdin) != size)
      return 2;
    const std::vector<uint8_t> plain = text;
    uint8_t tag[16];
    const Gcm gcm(key.data(), key_bytes, kPortableGcm);
    gcm.seal(nonce.data(), text.data(), size, tag);
    std::fwrite(text.data(), 1, size, stdout);
    std::fwrite(tag, 1, 16, stdout);
    tag[3] ^= 1;
    if (gcm.open(nonce.data(), text.data(), size, tag)) return 3;
    tag[3] ^= 1;
    if (!gcm.open(nonce.data(), text.data(), size, tag) || text != plain) return 4;
  }
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_portable_code_and_the_processors_instructions_agree(tmp_path):
    (tmp_path / "portable.cc").write_text(PROGRAM)
    sources = [tmp_path / "portable.cc", *(CRYPTO / f"{n}.cc" for n in ("gcm", "portable", "x86"))]
    subprocess.run(
        [
            "c++",
            "-std=c++17",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{CRYPTO}",
            *sources,
            "-o",
            tmp_path / "p",
        ],
        check=True,
    )
    rng = np.random.default_rng(3)
    cases = [
        (rng.bytes(key), rng.bytes(12), rng.bytes(size))
        for key in (16, 24, 32)
        for size in (0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000)
    ] + [tuple(map(bytes.fromhex, case[:3])) for case in VECTORS]
    given = b"".join(
        len(k).to_bytes(4, "little") + len(p).to_bytes(4, "little") + k + n + p for k, n, p in cases
    )
    done = subprocess.run([tmp_path / "p"], input=given, capture_output=True)
    assert done.returncode == 0
    assert done.stdout == b"".join(part for case in cases for part in seal(*case))


def test_another_implementation_agrees():
    aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")
    rng = np.random.default_rng(4)
    for size in (0, 5, 16, 100, 4099):
        for key in (16, 24, 32):
            k, nonce, plain = rng.bytes(key), rng.bytes(12), rng.bytes(size)
            assert b"".join(seal(k, nonce, plain)) == aead.AESGCM(k).encrypt(nonce, plain, None)


KEY = bytes(range(16))


@pytest.fixture
def sealed(lenet, tmp_path):
    return convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "n"), encrypt_key=KEY).path


def load(path, **arguments):
    model = mslite.Model()
    model.build_from_file(path, **arguments)
    return model


def test_an_encrypted_model_answers_as_the_plain_one(lenet, sealed):
    model = load(sealed, dec_key=KEY)
    expected = lenet[2]
    (found,) = trial.answers(model, [lenet[1]])
    assert np.abs(found - expected).max() <= 2e-6 * np.abs(expected).max()
    content = Path(sealed).read_bytes()
    assert b"MSL2" not in content[:64] and b"Conv2D" not in content


def test_core_reads_what_was_encrypted(lenet, sealed, tmp_path):
    pytest.importorskip("cryptography")
    from mycelia.io.crypto import decrypt, encrypt

    plain = convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "plain")).path
    assert bytes(decrypt(Path(sealed).read_bytes(), KEY)) == Path(plain).read_bytes()
    again = tmp_path / "again.ms"
    again.write_bytes(encrypt(Path(plain).read_bytes(), KEY))
    assert load(again, dec_key=KEY).get_inputs()[0].name == "x"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (dict(dec_key=b"\1" * 16), r"the key is wrong, or the model was changed \(code -200\)"),
        (dict(dec_key=b"short"), r"the key must have 16, 24 or 32 bytes, but has 5 \(code -3\)"),
        (dict(dec_mode="AES-CBC"), r"decrypted with AES-GCM, but not with AES-CBC \(code -7\)"),
        (dict(dec_key=b""), "the model is encrypted: give the key"),
    ],
)
def test_a_wrong_key_is_told(sealed, change, reason):
    with pytest.raises(RuntimeError, match=reason):
        load(sealed, **(dict(dec_key=KEY) | change))


@pytest.mark.parametrize("change", [dict(dec_key="text"), dict(dec_key=KEY, dec_mode=None)])
def test_arguments_of_other_types_are_refused(sealed, change):
    with pytest.raises(TypeError, match=list(change)[-1]):
        load(sealed, **change)


def test_a_changed_file_is_never_loaded(sealed, tmp_path):
    good = Path(sealed).read_bytes()
    broken = tmp_path / "broken.ms"
    places = [*range(0, 52), 100, len(good) // 2, len(good) - 1]
    unused = range(4 + 16 + 8 + 12, 4 + 16 + 8 + 16)  # 4 bytes of the iv that belong to no nonce
    for place in (p for p in places if p not in unused):
        data = bytearray(good)
        data[place] ^= 0x10
        broken.write_bytes(data)
        with pytest.raises(RuntimeError, match="code -200"):
            load(broken, dec_key=KEY)
    for size in (1, 3, 30, 48, len(good) - 1):
        broken.write_bytes(good[:size])
        with pytest.raises(RuntimeError, match="code -200"):
            load(broken, dec_key=KEY)


def test_an_encrypted_mindir_is_converted(lenet, tmp_path, monkeypatch):
    pytest.importorskip("cryptography")
    from mycelia.io.crypto import encrypt

    for mode in ("AES-GCM", "AES-CBC"):
        path = tmp_path / f"{mode}.mindir"
        path.write_bytes(encrypt(Path(lenet[0]).read_bytes(), KEY, mode))
        converter = mslite.Converter()
        converter.decrypt_key, converter.decrypt_mode = KEY.hex(), mode
        made = converter.convert(mslite.FmkType.MINDIR, str(path), str(tmp_path / mode))
        assert load(made.path).get_inputs()[0].name == "x"
        converter.decrypt_key = "00" * 16
        with pytest.raises(RuntimeError, match="decryption failed|is damaged"):  # padding may fit by chance
            converter.convert(mslite.FmkType.MINDIR, str(path), str(tmp_path / mode))
