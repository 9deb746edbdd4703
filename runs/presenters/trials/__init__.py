"""Counterfactual trials as pages show them: funnel, differences, blocks, coefficients, log, cost."""
