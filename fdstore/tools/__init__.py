"""What a model may call: the tools of `built_in`, found by `catalogue`, and functions of the user. `toolbox`
combines them."""
