"""SQL over stored texts: DuckDB reads copies of them, and can reach nothing else."""
