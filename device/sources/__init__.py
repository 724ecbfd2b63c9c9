"""Data sources: where devices' samples come from, one file a source."""
