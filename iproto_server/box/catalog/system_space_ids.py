"""The numbers of the system spaces and their views."""

from __future__ import annotations

SCHEMA, COLLATION, SPACE, INDEX = 272, 276, 280, 288
FUNC, USER, PRIV, CLUSTER, TRUNCATE = 296, 304, 312, 320, 330
SEQUENCE, SEQUENCE_DATA, SPACE_SEQUENCE = 284, 285, 340
VSPACE, VINDEX, VFUNC, VUSER, VPRIV, VSEQUENCE = 281, 289, 297, 305, 313, 286

SYSTEM_ID_MAX = 511
"""Spaces up to this id belong to the system."""

TRIGGER, FK_CONSTRAINT, CK_CONSTRAINT, FUNC_INDEX = 328, 356, 364, 372
WITHOUT_EFFECT = (TRIGGER, FK_CONSTRAINT, CK_CONSTRAINT)
"""Rows of these are kept and do nothing."""

DEFERRED_DELETE, SESSION_SETTINGS = 257, 380
OTHER_ENGINES = {DEFERRED_DELETE: "blackhole", SESSION_SETTINGS: "service"}
"""Of system spaces that hold no rows: what vinyl still has to delete, and the settings of a session."""
