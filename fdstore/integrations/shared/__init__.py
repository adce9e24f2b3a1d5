"""What adapters share, beside `thread_tools` and `process_name`."""
