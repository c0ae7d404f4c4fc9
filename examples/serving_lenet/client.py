"""Asks for the digits on images. usage: client.py IMAGE_FILE..."""

import sys
from pathlib import Path

from mycelia_serving.client import Client


def run(files: list[str], address: str = "127.0.0.1:5500") -> None:
    client = Client(address, "lenet", "classify")
    for file, result in zip(files, client.infer([{"image": Path(file).read_bytes()} for file in files])):
        if "error" in result:
            print(f"{file}: {result['error']}")
        else:
            print(f"{file}: {result['digit']} ({result['probability']:.0%})")


if __name__ == "__main__":
    run(sys.argv[1:])
