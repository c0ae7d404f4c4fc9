"""ONNX files: the messages of the format."""
