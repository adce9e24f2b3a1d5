"""The tools that a model may call: those of `built_in`, found by `catalogue`, and functions of the user.
`toolbox` combines them."""
