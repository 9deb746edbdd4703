"""Views of accounts, tokens, members and the audit log."""
