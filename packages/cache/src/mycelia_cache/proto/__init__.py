"""Messages between clients and the cache server."""
