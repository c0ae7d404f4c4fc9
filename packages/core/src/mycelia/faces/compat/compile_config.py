"""`mindspore._extends.parse.compile_config`: switches of MindSpore's own compiler.

Scripts set them to choose among its passes. Here is one way of compiling: any name may be set and read, and
changes nothing.
"""


def __getattr__(name: str) -> str:
    if name.isupper():
        return ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
