"""What a compiled graph or operator is made of and where its time goes: measured, and shown as text, JSON, a
page or a trace. Nothing here is imported before somebody asks."""
