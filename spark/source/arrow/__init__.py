"""Arrow arrays and columns from packed rows."""
