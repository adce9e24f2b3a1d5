"""The blocking client, generated from the awaiting one."""
