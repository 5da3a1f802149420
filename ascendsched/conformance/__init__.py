"""What every device must do: checks that run on any device by name, for authors of devices and for our own tests.

Kernels are compared with the CPU device's. What a device has no kernel for is reported as unsupported, not left out.

>>> from ascendsched import conformance
>>> [outcome for outcome in conformance.run("cpu") if outcome.verdict == "failed"]
[]
"""

from ascendsched.conformance.check import Outcome, Unsupported
from ascendsched.conformance.suite import names, run, run_check

__all__ = ["Outcome", "Unsupported", "names", "run", "run_check"]
