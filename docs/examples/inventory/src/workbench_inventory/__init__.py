"""Stock-keeping: count what is short, find who sells it, order it, report it. An environment from outside Workbench."""
