"""Commands of `mycelia-insight`."""
