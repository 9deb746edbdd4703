"""The metric store: landing rows, sealed chunks, one write function for logged points, one read function for all."""
