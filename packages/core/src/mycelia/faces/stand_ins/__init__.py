"""Devices and processes that are not there, as scripts ask for them: the host, and one process."""
