"""Ops between processes: collectives, and messages from one to one."""
