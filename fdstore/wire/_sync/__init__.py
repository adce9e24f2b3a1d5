"""The blocking runners: `runner` and `cluster` are generated from `_async`, by `make generate`."""
