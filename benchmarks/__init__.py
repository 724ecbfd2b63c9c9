"""Ratios measured side by side in one run, never absolute times in a test."""

import argparse


def add_limits(parser: argparse.ArgumentParser) -> None:
    """What every benchmark with limits understands."""
    parser.add_argument(
        "--limits",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="the exit code is 1 if a figure is beyond its limit; with --no-limits figures are shown and not judged",
    )
