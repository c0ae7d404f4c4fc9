"""MindRecord: files of rows with a schema and an index, as MindSpore writes and reads them."""

from mycelia.mindrecord import exceptions
from mycelia.mindrecord.converters import Cifar10ToMR, Cifar100ToMR, CsvToMR, ImageNetToMR, MnistToMR
from mycelia.mindrecord.crypt import (
    get_dec_mode,
    get_enc_key,
    get_enc_mode,
    set_dec_mode,
    set_enc_key,
    set_enc_mode,
)
from mycelia.mindrecord.exceptions import *  # noqa: F403
from mycelia.mindrecord.reader import FileReader, MindPage
from mycelia.mindrecord.tfrecord import TFRecordToMR
from mycelia.mindrecord.writer import FAILED, SUCCESS, FileWriter

__all__ = [
    "FAILED", "SUCCESS", "Cifar10ToMR", "Cifar100ToMR", "CsvToMR", "FileReader", "FileWriter",
    "ImageNetToMR", "MindPage", "MnistToMR", "TFRecordToMR", "get_dec_mode", "get_enc_key", "get_enc_mode",
    "set_dec_mode", "set_enc_key", "set_enc_mode", *exceptions.__all__,
]  # fmt: skip
