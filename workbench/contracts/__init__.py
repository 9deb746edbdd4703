"""Records, canonical bytes, digests and the plan schema: what every other part agrees on.

Imports the standard library and ``rfc8785`` only, so that a trainer, the web process, a worker
and the Python client can all read the same bytes without Django, Celery or torch.
"""
