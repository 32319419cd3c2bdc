"""The numbers of the system spaces and their views."""

from __future__ import annotations

SCHEMA, COLLATION, SPACE, INDEX = 272, 276, 280, 288
FUNC, USER, PRIV, CLUSTER, TRUNCATE = 296, 304, 312, 320, 330
VSPACE, VINDEX, VFUNC, VUSER, VPRIV = 281, 289, 297, 305, 313

SYSTEM_ID_MAX = 511
"""Spaces up to this id belong to the system."""

WITHOUT_EFFECT = (328, 340, 356, 364)
"""`_trigger`, `_space_sequence`, `_fk_constraint`, `_ck_constraint`: rows that are kept and do nothing."""
