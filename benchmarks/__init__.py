"""Ratios measured side by side in one run, never absolute times in a test."""
