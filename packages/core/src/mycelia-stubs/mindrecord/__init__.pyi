# Written by tools/gen_stubs.py.
from mycelia.mindrecord.converters import (
    Cifar100ToMR as Cifar100ToMR, Cifar10ToMR as Cifar10ToMR, CsvToMR as CsvToMR,
    ImageNetToMR as ImageNetToMR, MnistToMR as MnistToMR,
)
from mycelia.mindrecord.crypt import (
    get_dec_mode as get_dec_mode, get_enc_key as get_enc_key, get_enc_mode as get_enc_mode,
    set_dec_mode as set_dec_mode, set_enc_key as set_enc_key, set_enc_mode as set_enc_mode,
)
from mycelia.mindrecord.exceptions import (
    MindRecordException as MindRecordException, MindRecordException as _MindRecordException,
)
from mycelia.mindrecord.reader import FileReader as FileReader, MindPage as MindPage
from mycelia.mindrecord.tfrecord import TFRecordToMR as TFRecordToMR
from mycelia.mindrecord.writer import FileWriter as FileWriter

__all__ = [
    "FAILED", "SUCCESS", "Cifar10ToMR", "Cifar100ToMR", "CsvToMR", "FileReader", "FileWriter",
    "ImageNetToMR", "MindPage", "MnistToMR", "TFRecordToMR", "get_dec_mode", "get_enc_key", "get_enc_mode",
    "set_dec_mode", "set_enc_key", "set_enc_mode", "MindRecordException", "UnknownError", "ParamTypeError",
    "ParamValueError", "ParamMissError", "PathNotExistsError", "DbConnectionError", "MRMOpenError",
    "MRMOpenForAppendError", "MRMInvalidPageSizeError", "MRMInvalidHeaderSizeError", "MRMSetHeaderError",
    "MRMWriteDatasetError", "MRMCommitError", "MRMLaunchError", "MRMFinishError", "MRMCloseError",
    "MRMAddSchemaError", "MRMAddIndexError", "MRMBuildSchemaError", "MRMGetMetaError",
    "MRMIndexGeneratorError", "MRMGenerateIndexError", "MRMInitSegmentError",
    "MRMFetchCandidateFieldsError", "MRMReadCategoryInfoError", "MRMFetchDataError",
    "MRMInvalidSchemaError", "MRMValidateDataError", "MRMDefineIndexError", "MRMDefineBlobError",
    "MRMUnsupportedSchemaError", "MRMDefineCategoryError",
]

FAILED: int
SUCCESS: int

class UnknownError(_MindRecordException):
    """Unknown Error."""

class ParamTypeError(_MindRecordException):
    """Invalid parameter type. '{}' expect {} type."""

class ParamValueError(_MindRecordException):
    """Invalid parameter value. {}"""

class ParamMissError(_MindRecordException):
    """Miss parameter. '{}' is missing."""

class PathNotExistsError(_MindRecordException):
    """Invalid path. {}"""

class DbConnectionError(_MindRecordException):
    """Db connection is error. Detail: {}"""

class MRMOpenError(_MindRecordException):
    """MindRecord could not open."""

class MRMOpenForAppendError(_MindRecordException):
    """MindRecord could not open for append."""

class MRMInvalidPageSizeError(_MindRecordException):
    """Failed to set page size."""

class MRMInvalidHeaderSizeError(_MindRecordException):
    """Failed to set header size."""

class MRMSetHeaderError(_MindRecordException):
    """Failed to set header."""

class MRMWriteDatasetError(_MindRecordException):
    """Failed to write dataset."""

class MRMCommitError(_MindRecordException):
    """Failed to commit."""

class MRMLaunchError(_MindRecordException):
    """Failed to launch."""

class MRMFinishError(_MindRecordException):
    """Failed to finish."""

class MRMCloseError(_MindRecordException):
    """Failed to close."""

class MRMAddSchemaError(_MindRecordException):
    """Failed to add schema."""

class MRMAddIndexError(_MindRecordException):
    """Failed to add index field."""

class MRMBuildSchemaError(_MindRecordException):
    """Failed to build schema."""

class MRMGetMetaError(_MindRecordException):
    """Failed to get meta info."""

class MRMIndexGeneratorError(_MindRecordException):
    """Failed to create index generator."""

class MRMGenerateIndexError(_MindRecordException):
    """Failed to generate index."""

class MRMInitSegmentError(_MindRecordException):
    """Failed to initialize segment."""

class MRMFetchCandidateFieldsError(_MindRecordException):
    """Failed to fetch candidate category fields."""

class MRMReadCategoryInfoError(_MindRecordException):
    """Failed to read category information."""

class MRMFetchDataError(_MindRecordException):
    """Failed to fetch data by category."""

class MRMInvalidSchemaError(_MindRecordException):
    """Schema format is error. Detail: {}"""

class MRMValidateDataError(_MindRecordException):
    """Raw data do not match the schema. Detail: {}"""

class MRMDefineIndexError(_MindRecordException):
    """Failed to define index field. Detail: {}"""

class MRMDefineBlobError(_MindRecordException):
    """Failed to define blob field. Detail: {}"""

class MRMUnsupportedSchemaError(_MindRecordException):
    """Schema is not supported. Detail: {}"""

class MRMDefineCategoryError(_MindRecordException):
    """Failed to define category field. Detail: {}"""
