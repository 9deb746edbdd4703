"""The query language of lists and search: parsing, the table of keys, and pages that do not shift."""
