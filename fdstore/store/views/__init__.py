"""What people and metrics see of a store: processes, trees, workers, totals."""
