"""Functions under `box.` on both servers."""
