"""How an installation is set up: variables, addresses, logs, extras."""
