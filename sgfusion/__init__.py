"""The kernel of SGFusion: method 1-8 as pure functions on numpy arrays.

No network, no event loop, no torch, no clock, no global random numbers. What the functions mean is in `docs/method.md`,
whose section numbers the docstrings cite as `method 4`.
"""
