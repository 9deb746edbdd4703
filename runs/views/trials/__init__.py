"""Pages of counterfactual trials."""
