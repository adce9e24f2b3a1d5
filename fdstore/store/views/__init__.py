"""A store as people and metrics see it: processes, trees, workers, totals."""
