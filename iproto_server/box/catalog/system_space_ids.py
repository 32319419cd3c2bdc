"""The numbers of the system spaces and their views."""

from __future__ import annotations

SCHEMA, COLLATION, SPACE, INDEX = 272, 276, 280, 288
FUNC, USER, PRIV, CLUSTER, TRUNCATE = 296, 304, 312, 320, 330
SEQUENCE, SEQUENCE_DATA, SPACE_SEQUENCE = 284, 285, 340
VSPACE, VINDEX, VFUNC, VUSER, VPRIV, VSEQUENCE = 281, 289, 297, 305, 313, 286

SYSTEM_ID_MAX = 511
"""The greatest id of system spaces."""

TRIGGER, FK_CONSTRAINT, CK_CONSTRAINT, FUNC_INDEX = 328, 356, 364, 372
WITHOUT_EFFECT = (TRIGGER, FK_CONSTRAINT, CK_CONSTRAINT)
"""System spaces whose rows are stored without effect."""

DEFERRED_DELETE, SESSION_SETTINGS = 257, 380
OTHER_ENGINES = {DEFERRED_DELETE: "blackhole", SESSION_SETTINGS: "service"}
"""Engines of system spaces without rows: deferred deletions of vinyl, and session settings."""
