"""A run file with nothing but what has no default."""

BASE = """
name = "a"
seed = 1
rounds = 2
[task]
name = "linear"
[data]
source = "generated"
"""
