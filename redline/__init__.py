"""Redline."""
