"""gRPC reflection and the watched health of the services on the gRPC port."""

from __future__ import annotations

import functools

from mycelia_serving.frontend.service import SERVICES

NAMES = ("grpc.reflection.v1alpha.ServerReflection", "grpc.reflection.v1.ServerReflection")
PATHS = tuple(f"/{name}/ServerReflectionInfo" for name in NAMES)  # one protocol under two names


@functools.cache
def _servicer():
    """Answers from a pool of its own: other packages in this process may define the same messages."""
    from google.protobuf import descriptor_pb2, descriptor_pool
    from grpc_health.v1 import health_pb2
    from grpc_reflection.v1alpha import reflection, reflection_pb2

    from mycelia_serving.wire.proto import inference_pb2, serving_pb2

    pool = descriptor_pool.DescriptorPool()
    for file in (
        serving_pb2.PredictRequest.DESCRIPTOR.file,
        inference_pb2.ModelInferRequest.DESCRIPTOR.file,
        health_pb2.DESCRIPTOR,
        reflection_pb2.DESCRIPTOR,
    ):
        pool.Add(descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb))
    return reflection.ReflectionServicer((*SERVICES, NAMES[0]), pool=pool)


def reflected(body: bytes) -> bytes:
    """The answer to one `ServerReflectionRequest`."""
    from grpc_reflection.v1alpha import reflection_pb2

    request = reflection_pb2.ServerReflectionRequest.FromString(body)
    (answer,) = _servicer().ServerReflectionInfo(iter((request,)), None)
    return answer.SerializeToString()
