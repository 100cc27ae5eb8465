"""What every operator computes: one short definition each, by family, in the vocabulary of tensor
programs."""
