"""Statements of `box.schema`, carried out as changes of the system spaces."""
