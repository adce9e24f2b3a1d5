"""The worker: the Celery application that runs spawned agents and pipelines."""
