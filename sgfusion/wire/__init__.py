"""What travels between the tiers, and how: the only part of `sgfusion` that knows of protobuf and gRPC."""
