"""One process for ports and models, started as in MindSpore Serving 1.1."""

import os

from mycelia_serving import master, worker


def start():
    servable_dir = os.path.dirname(os.path.abspath(__file__))
    worker.start_servable_in_master(servable_dir, "add", device_id=0)
    worker.start_servable_in_master(servable_dir, "add_batch", device_id=0)
    master.start_grpc_server("127.0.0.1", 5500)
    master.start_restful_server("127.0.0.1", 1500)


if __name__ == "__main__":
    start()
