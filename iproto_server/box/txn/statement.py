"""Statements, savepoints and committed transactions, as the engine shows them."""

from __future__ import annotations

from iproto_server.native._native import Savepoint, Statement, Transaction

__all__ = ["Savepoint", "Statement", "Transaction"]
