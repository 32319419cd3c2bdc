"""The user with a password that all servers of these tests have besides guest."""

USER = "alice"
PASSWORD = "secret of alice"

LUA = f"""\
box.schema.user.create('{USER}', {{password = '{PASSWORD}', if_not_exists = true}})
box.schema.user.grant('{USER}', 'read,write,execute,create', 'universe', nil, {{if_not_exists = true}})
"""
"""Creates the user in a real Tarantool; `accounts_application` does the same for our server."""
