"""An application that grants guest the rows that give it all rights in a real Tarantool.

Our server needs no such rows as long as only this machine can connect; but rows are compared, too.
"""

from iproto_server import Application, Box

app = Application("super guest")


@app.setup
def grant(box: Box) -> None:
    box.schema.user.grant("guest", "super", if_not_exists=True)
