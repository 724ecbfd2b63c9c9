"""One zone: its devices, its histogram, its rounds, its peers, its checkpoints. No torch."""
