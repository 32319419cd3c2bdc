"""Request handlers, from dispatch to the handler result."""
