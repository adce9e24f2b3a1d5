"""HTTP as a server and as a client: connections, their limits, requests."""
