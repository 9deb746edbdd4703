"""Pages. Each view reads rows, hands them to presenters and renders one template; writes go through actions."""
