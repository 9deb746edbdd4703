"""The journal: one entry a day per study, drafted from receipts."""
