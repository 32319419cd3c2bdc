"""What operators see and repair: the procedures `operator.…`, and the status of the server."""
