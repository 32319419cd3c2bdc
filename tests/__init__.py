"""The specification of iproto-server, laid out as the rooms it describes.

`clients/` runs real clients, `differential/` compares with a real Tarantool; the other folders mirror the
packages.
"""
