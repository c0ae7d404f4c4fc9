"""A model whose parts run in processes of their own, on one or many hosts.

A *leader*, in the worker of the servable, waits for one *agent* per rank, sends the inputs to the agents of
the first stage, hands what a stage computes to the next one, and takes the outputs from the last.
"""
