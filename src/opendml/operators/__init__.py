"""The definitions of the operators: one short definition each, by family, in the vocabulary of tensor
programs."""
