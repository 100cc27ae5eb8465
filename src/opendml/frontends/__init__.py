"""Front doors: ways to describe work for opendml other than its own Python interface."""
