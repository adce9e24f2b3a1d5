"""The workers: Celery lives here, and what runs agents that others spawn."""
