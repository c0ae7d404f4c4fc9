"""Message classes of MindSpore Serving's protocol (`serving_pb2`) and of KServe v2 (`inference_pb2`)."""
