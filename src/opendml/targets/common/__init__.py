"""The parts of targets that do not depend on the language of their code."""
