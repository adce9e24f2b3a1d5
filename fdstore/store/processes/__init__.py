"""Processes: their records, tables, journals, leases, calls and ends."""
