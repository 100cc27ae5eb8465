"""PyDirectML, Microsoft's module and its fork: expressions that build a graph, and devices that run it."""
