"""Calibration: how fast each device and each path between devices is, kept as a table."""
