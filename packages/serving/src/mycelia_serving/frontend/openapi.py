"""The REST interface described: an OpenAPI document of what is served now, and a page for people."""

from __future__ import annotations

import html
import json
from urllib.parse import quote

from mycelia_serving.request import MethodInfo, ServableInfo, TensorInfo

_ERROR = {"type": "object", "properties": {"error_msg": {"type": "string"}}}
_STATUSES = {
    "400": "The request, or every instance of it, is wrong.",
    "404": "Unknown servable, version or method.",
    "413": "The body is too large.",
    "429": "Too many requests wait.",
    "503": "The server is stopping, or the servable has no worker.",
    "504": "The deadline has passed.",
}


def document(infos: list[ServableInfo]) -> dict:
    """OpenAPI 3.1."""
    from mycelia_serving import __version__

    paths: dict = {}
    for info in infos:
        for method in info.methods:
            entry = {"post": _operation(info, method)}
            paths[f"/model/{quote(info.name)}/version/{info.version}:{quote(method.name)}"] = entry
    for path, summary in (
        ("/model", "What is served: versions, methods, signatures, workers."),
        ("/metrics", "Counters and histograms for Prometheus."),
        ("/v2/health/live", "Whether the server runs (KServe v2)."),
        ("/v2/health/ready", "Whether it takes requests (KServe v2)."),
        ("/v2", "Metadata of the server (KServe v2)."),
    ):
        paths[path] = {"get": {"summary": summary, "responses": {"200": {"description": "OK"}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Mycelia Serving", "version": __version__},
        "paths": paths,
        "components": {"schemas": _SCHEMAS},
    }


def _operation(info: ServableInfo, method: MethodInfo) -> dict:
    def instances(tensors: tuple[TensorInfo, ...], alternative: dict | None = None) -> dict:
        one = {
            "type": "object",
            "properties": {t.name: _tensor(t) for t in tensors},
            "required": [t.name for t in tensors],
        }
        if alternative is not None:
            one = {"anyOf": [one, alternative]}
        return {
            "type": "object",
            "properties": {"instances": {"type": "array", "minItems": 1, "items": one}},
            "required": ["instances"],
        }

    return {
        "summary": f"{method.name} of {info.name}, version {info.version}",
        "operationId": f"{info.name}.{info.version}.{method.name}",
        "tags": [info.name],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": instances(method.inputs)}},
        },
        "responses": {
            "200": {
                "description": "A result or an error_msg for each instance, in their order.",
                "content": {"application/json": {"schema": instances(method.outputs, _ERROR)}},
            }
        }
        | {
            status: {"description": text, "content": {"application/json": {"schema": _ERROR}}}
            for status, text in _STATUSES.items()
        },
    }


_SCHEMAS = {
    "Encoded": {
        "type": "object",
        "properties": {
            "b64": {"type": "string", "contentEncoding": "base64"},
            "type": {"type": "string", "default": "bytes"},
            "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        },
        "required": ["b64"],
        "additionalProperties": False,
    },
}
_ENCODED = {"$ref": "#/components/schemas/Encoded"}


def _tensor(info: TensorInfo) -> dict:
    if info.dtype == "bytes":
        return _ENCODED
    if info.dtype == "str":
        return {"anyOf": [{"type": "string"}, _ENCODED]}
    if info.dtype is None:
        return {"description": "any value"}
    kind = {"b": "boolean", "f": "number"}.get(info.dtype[0], "integer")
    schema: dict = {"type": kind, "description": info.dtype}
    for size in reversed(info.shape or ()):
        schema = {"type": "array", "items": schema}
        if size >= 0:
            schema |= {"minItems": size, "maxItems": size}
    return {"anyOf": [schema, _ENCODED]}


def page(infos: list[ServableInfo]) -> str:
    """What is served, with a curl line for each method."""
    rows = []
    for info in infos:
        rows.append(
            f"<h2>{html.escape(info.name)} {info.version} <small>{html.escape(info.state)}</small></h2>"
        )
        for method in info.methods:
            inputs = ", ".join(_signature(i) for i in method.inputs)
            outputs = ", ".join(_signature(o) for o in method.outputs)
            path = f"/model/{quote(info.name)}/version/{info.version}:{quote(method.name)}"
            body = json.dumps({"instances": [{i.name: _example(i) for i in method.inputs}]})
            rows.append(
                f"<h3>{html.escape(f'{method.name}({inputs}) -> {outputs}')}</h3>"
                f"<pre>curl -X POST http://HOST:PORT{html.escape(path)} -d '{html.escape(body)}'</pre>"
            )
    links = " ".join(
        f'<a href="{path}">{path}</a>' for path in ("/openapi.json", "/model", "/metrics", "/v2")
    )
    return (
        "<!doctype html><meta charset=utf-8><title>Mycelia Serving</title>"
        "<style>body{font:16px sans-serif;max-width:60em;margin:2em auto}pre{overflow:auto}</style>"
        f"<h1>Mycelia Serving</h1><p>{links}</p>{''.join(rows)}"
    )


def _signature(info: TensorInfo) -> str:
    shape = "" if not info.shape else str(list(info.shape))
    return f"{info.name}: {info.dtype or 'any'}{shape}"


def _example(info: TensorInfo):
    """A value of the input's type and shape, if it is small."""
    if info.dtype in ("str", None):
        return "text"
    if info.dtype == "bytes":
        return {"b64": "Ynl0ZXM="}
    value = {"b": True, "f": 0.5}.get(info.dtype[0], 1)
    for size in reversed(info.shape or ()):
        value = [value] * (size if 0 <= size <= 4 else 1)
    return value
