"""What a model may call: one tool, one file. `toolbox` puts them together."""
