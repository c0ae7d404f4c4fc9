"""What goes wrong with MindRecord files: MindSpore's error classes, by their names.

`except MRMOpenError` and `except MindRecordException` of existing scripts work; each is a MyceliaError too.
"""

from __future__ import annotations

from mycelia.engine.base import errors


class MindRecordException(errors.MyceliaError):
    """Base of the errors about arguments, schemas and data. `error_msg` is the text."""

    code = "MYC-FILE"
    text = "Unknown Error."

    def __init__(self, *details, **about):
        super().__init__(
            self.text.format(*details) if details or "{" not in self.text else self.text, **about
        )

    def __init_subclass__(cls, **kwargs):
        """These are classes of MindSpore: they keep their own names."""

    def __str__(self):
        return f"[{type(self).__name__}]: {self.message}"

    def __reduce__(self):
        return _rebuild, (type(self), self.message)

    @property
    def error_msg(self) -> str:
        return self.message


MindRecordException.__name__ = MindRecordException.__qualname__


def _rebuild(kind: type[MindRecordException], message: str) -> MindRecordException:
    made = kind.__new__(kind)
    errors.MyceliaError.__init__(made, message)
    return made


_TEXTS = {
    "UnknownError": "Unknown Error.",
    "ParamTypeError": "Invalid parameter type. '{}' expect {} type.",
    "ParamValueError": "Invalid parameter value. {}",
    "ParamMissError": "Miss parameter. '{}' is missing.",
    "PathNotExistsError": "Invalid path. {}",
    "DbConnectionError": "Db connection is error. Detail: {}",
    "MRMOpenError": "MindRecord could not open.",
    "MRMOpenForAppendError": "MindRecord could not open for append.",
    "MRMInvalidPageSizeError": "Failed to set page size.",
    "MRMInvalidHeaderSizeError": "Failed to set header size.",
    "MRMSetHeaderError": "Failed to set header.",
    "MRMWriteDatasetError": "Failed to write dataset.",
    "MRMCommitError": "Failed to commit.",
    "MRMLaunchError": "Failed to launch.",
    "MRMFinishError": "Failed to finish.",
    "MRMCloseError": "Failed to close.",
    "MRMAddSchemaError": "Failed to add schema.",
    "MRMAddIndexError": "Failed to add index field.",
    "MRMBuildSchemaError": "Failed to build schema.",
    "MRMGetMetaError": "Failed to get meta info.",
    "MRMIndexGeneratorError": "Failed to create index generator.",
    "MRMGenerateIndexError": "Failed to generate index.",
    "MRMInitSegmentError": "Failed to initialize segment.",
    "MRMFetchCandidateFieldsError": "Failed to fetch candidate category fields.",
    "MRMReadCategoryInfoError": "Failed to read category information.",
    "MRMFetchDataError": "Failed to fetch data by category.",
    "MRMInvalidSchemaError": "Schema format is error. Detail: {}",
    "MRMValidateDataError": "Raw data do not match the schema. Detail: {}",
    "MRMDefineIndexError": "Failed to define index field. Detail: {}",
    "MRMDefineBlobError": "Failed to define blob field. Detail: {}",
    "MRMUnsupportedSchemaError": "Schema is not supported. Detail: {}",
    "MRMDefineCategoryError": "Failed to define category field. Detail: {}",
}

globals().update(
    {
        name: type(name, (MindRecordException,), {"text": text, "__module__": __name__, "__doc__": text})
        for name, text in _TEXTS.items()
    }
)

__all__ = ["MindRecordException", *_TEXTS]
