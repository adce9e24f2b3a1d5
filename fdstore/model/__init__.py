"""What a store holds, declared: records, limits, and how processes live and end."""
