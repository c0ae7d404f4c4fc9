"""The master of a cluster: clients call it, workers join it."""

from mycelia_serving import master


def start():
    master.start_grpc_server("127.0.0.1", 5500)
    master.start_restful_server("127.0.0.1", 1500)
    master.start_master_server("127.0.0.1", 6500)


if __name__ == "__main__":
    start()
