"""Graphs: the arena, recorded decisions, and the ONNX reader."""
