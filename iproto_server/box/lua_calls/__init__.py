"""What clients CALL in Lua's words: `box.space.NAME:select`, `box.schema.user.create`, `box.info`, and so on.

Each function takes the arguments of a call as a list, checks them as Tarantool's Lua does, and uses the face
that procedures have.
"""
