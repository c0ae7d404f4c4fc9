"""Tools for testing ops and backends, for Mycelia's own suite and for third parties."""
