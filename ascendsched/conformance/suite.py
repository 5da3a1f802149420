"""All checks under their names, and how they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from ascendsched.conformance import kernels, scheduling
from ascendsched.conformance.check import Failure, Outcome, Subject, Unsupported
from ascendsched.errors import AscendSchedError, DeviceUnavailableError, GraphError

MODES = ("host", "sink", "auto")
Check = Callable[[Subject], None]


def _kernel(cases: list[kernels.Case], subject: Subject) -> None:
    """All cases of one operator; what the device refuses is told after the others were judged."""
    refused = []
    for case in cases:
        for mode in ("host", "sink"):
            try:
                case.run(subject, mode)
            except Unsupported as reason:
                refused.append(str(reason))
                break
            except Failure as failure:
                raise Failure(f"{case.label}, {mode} mode: {failure}") from failure
    if refused:
        raise Unsupported(f"{len(refused)} of {len(cases)} cases: " + "; ".join(dict.fromkeys(refused)))


@cache
def _checks() -> dict[str, Check]:
    found: dict[str, Check] = {}
    for check in scheduling.CHECKS:
        for mode in MODES:
            found[f"{check.__name__}[{mode}]"] = partial(_call, check, mode)
    for op, cases in kernels.cases().items():
        found[f"kernel[{op}]"] = partial(_kernel, cases)
    return found


def _call(check: Callable[[Subject, str], None], mode: str, subject: Subject) -> None:
    check(subject, mode)


def names() -> list[str]:
    """Names of all checks, in the order in which `run` makes them."""
    return list(_checks())


def run_check(name: str, device: str) -> Outcome:
    """Makes one check on a device.

    Parameters
    ----------
    name
        One of `names`.
    device
        As for `ascendsched.compile`.

    Raises
    ------
    GraphError
        For an unknown check.
    DeviceUnavailableError
        For an unknown device.
    DeviceError
        Where the device's package does not load.
    """
    if name not in _checks():
        raise GraphError(f"[conformance] there is no check '{name}'; ascendsched.conformance.names() lists them")
    return _judge(name, Subject(device))


def run(device: str, checks: Iterable[str] | None = None) -> Iterator[Outcome]:
    """Makes all checks, or those given, one after the other; raises as `run_check`."""
    for name in names() if checks is None else checks:
        yield run_check(name, device)


def _judge(name: str, subject: Subject) -> Outcome:
    try:
        _checks()[name](subject)
    except Unsupported as reason:
        return Outcome(name, "unsupported", str(reason))
    except Failure as failure:
        return Outcome(name, "failed", str(failure))
    except DeviceUnavailableError:
        raise
    except AscendSchedError as error:
        return Outcome(name, "failed", f"{type(error).__name__}: {error}")
    return Outcome(name, "passed")
