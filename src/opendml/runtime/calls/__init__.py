"""Immediate calls: a call, its desc and program, its validation, and the plans that later calls reuse."""
