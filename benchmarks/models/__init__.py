"""The dashboard of whole models: `python -m benchmarks.models` times engines on networks that people run.

Each engine runs in a process of its own, once a round; the processes of all engines alternate. Nothing here
imports a library with threads of its own: the modules that processes run import what they need.
"""
