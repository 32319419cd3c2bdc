"""Texts for people and programs: counted nouns, exceptions, cut payloads, JSON."""
