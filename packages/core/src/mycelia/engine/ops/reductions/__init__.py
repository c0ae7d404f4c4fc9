"""Ops that combine elements along axes: sums, extremes, running totals, statistics, groups of rows."""
