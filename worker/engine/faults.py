"""Fault points of the engine: places where the crash tests may have this process killed, once.

``reach`` does nothing unless ``WORKBENCH_FAULT_DIR`` is set. Points: collect, old_logprobs, backward,
blob_written, adapter_written, trial; sandbox in ``worker.sandbox.process``.
"""

from workbench.faults import reach

__all__ = ["reach"]
