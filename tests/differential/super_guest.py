"""An application that gives guest the rows that a real Tarantool needs to let it do everything.

Ours lets it do everything without, while only this machine can connect; but rows are compared, too.
"""

from iproto_server import Application, Box

app = Application("super guest")


@app.setup
def grant(box: Box) -> None:
    box.schema.user.grant("guest", "super", if_not_exists=True)
