"""Files of graphs: all that builds a model or a compiled operator again, and nothing that is executed.

A file has a fixed head, the steps of a graph in JSON, and the bytes of its constants (`container`). Loading
builds the graph step by step, and checks each step as a caller's.
"""
