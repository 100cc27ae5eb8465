"""Where tensor programs run: one package per target."""
