"""Readers of real profiles, one module per source."""
