"""Two worker processes for each servable, started as in MindSpore Serving 2.x."""

import os

from mycelia_serving import server


def start():
    servable_dir = os.path.dirname(os.path.abspath(__file__))
    add = server.ServableStartConfig(servable_dir, "add", num_parallel_workers=2)
    add_batch = server.ServableStartConfig(servable_dir, "add_batch", num_parallel_workers=2)
    server.start_servables([add, add_batch])
    server.start_grpc_server("127.0.0.1:5500")
    server.start_restful_server("127.0.0.1:1500")


if __name__ == "__main__":
    start()
