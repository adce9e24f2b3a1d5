"""Changes of hosts' configuration: what `fdstore hook install HOST` writes, and `--undo` takes back.

launch         the command lines that hosts run
toml_config    Codex: a marked part at the end of config.toml, so that comments and order stay
json_settings  Claude Code and Gemini CLI: entries of settings.json
change         a change of one file: shown, written in one step, recorded and undone
"""
