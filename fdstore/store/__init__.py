"""Redis: keys, scripts, operations and the connections that run them. The only `import redis`."""
