"""``evidence_search``: find facts about made-up medicines in three source families and cite them.

Pure Python, deterministic, no torch, no Django. The medicines, makers and facts are invented.
"""
