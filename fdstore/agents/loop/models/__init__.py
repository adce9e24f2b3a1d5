"""Models that agents query: the protocol, and one file for each provider."""
