"""The user with a password whom the servers of these tests have beside the guest."""

USER = "alice"
PASSWORD = "secret of alice"

LUA = f"""\
box.schema.user.create('{USER}', {{password = '{PASSWORD}', if_not_exists = true}})
box.schema.user.grant('{USER}', 'read,write,execute,create', 'universe', nil, {{if_not_exists = true}})
"""
"""What makes a real Tarantool know the user; `accounts_application` is the same for our server."""
