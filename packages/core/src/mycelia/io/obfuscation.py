"""Obfuscated checkpoints: MindSpore rewrites the network's source for them, which is not done here."""

from __future__ import annotations

from typing import NoReturn

from mycelia.engine.base import errors


def _refused(owner: str) -> Exception:
    return errors.error(
        errors.NotSupportedError,
        owner,
        "networks are not rewritten to compute on obfuscated weights",
        hint="save_checkpoint(..., enc_key=...) encrypts a file",
    )


def obfuscate_ckpt(
    network, ckpt_files, target_modules=None, obf_config=None, saved_path="./", obfuscate_scale=100
) -> NoReturn:
    """Weights of checkpoints times random factors. Errors: NotSupportedError."""
    raise _refused("obfuscate_ckpt")


def load_obf_params_into_net(
    network, target_modules=None, obf_ratios=None, obf_config=None, data_parallel_num=1, **kwargs
) -> NoReturn:
    """A network that undoes the factors of an obfuscated checkpoint. Errors: NotSupportedError."""
    raise _refused("load_obf_params_into_net")
