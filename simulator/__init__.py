"""The simulator: the same `zone_trainer` in one process, every method of the comparison, and suites of experiments."""
