"""`mindspore.multiprocessing`: Python's, as tensors need nothing of their own to go to another process."""

import multiprocessing

__all__ = multiprocessing.__all__


def __getattr__(name: str):
    return getattr(multiprocessing, name)
