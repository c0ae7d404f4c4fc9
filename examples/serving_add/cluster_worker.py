"""A worker of a cluster. usage: cluster_worker.py [add | add_batch] [PORT]"""

import os
import sys

from mycelia_serving import worker


def start(servable: str = "add", port: str = "6600"):
    servable_dir = os.path.dirname(os.path.abspath(__file__))
    worker.start_servable(
        servable_dir,
        servable,
        device_id=0,
        master_ip="127.0.0.1",
        master_port=6500,
        worker_ip="127.0.0.1",
        worker_port=int(port),
    )


if __name__ == "__main__":
    start(*sys.argv[1:])
