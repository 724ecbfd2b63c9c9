"""Rounds in which nothing is computed: what it costs to send weights to devices and have as much come back."""
