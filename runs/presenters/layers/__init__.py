"""Six layers of a run: which charts there are, what they draw, what each layer's answer is."""
