"""The commands of `mycelia-lite`, one file each; `mycelia_lite.cli` enters them."""
