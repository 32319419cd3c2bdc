"""The facade that procedures use: `box.space`, `box.schema`, `box.session`, and so on."""
