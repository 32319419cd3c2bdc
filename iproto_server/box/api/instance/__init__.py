"""`box.info`, `box.stat`, `box.slab` and `box.cfg`."""
