"""Graphs whose values are divided among the ranks that train together.

`annotate` writes layouts into a graph that is being captured, `partition` makes of the graph of the whole the
graph of one rank: `propagate`s layouts by the `rules` of ops, cuts Parameters, and puts collectives where
values are needed in another layout (`rewriter`).
"""
