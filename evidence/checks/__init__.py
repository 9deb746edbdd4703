"""The steps of ``verify``, one module each."""
