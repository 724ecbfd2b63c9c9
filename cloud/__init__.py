"""The registry of a run: its zones, their dendrogram and plans, their reports. No torch."""
