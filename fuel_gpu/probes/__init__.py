"""Probes: what devices are here, and why the missing ones are missing."""
