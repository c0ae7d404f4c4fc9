"""Bytes of the gRPC protocols to and from neutral requests and replies."""
