"""The tools a model may call, one per file; `toolbox` combines them."""
