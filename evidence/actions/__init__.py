"""Changes of the evidence: one function each, called by pages, API, commands and tasks alike."""
