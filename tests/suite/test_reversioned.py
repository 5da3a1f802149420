"""Older forms of operators, as onnxruntime computes them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ascendsched as asc
from tests.suite.reversioned import pairs

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
ort.set_default_logger_severity(4)

# Operators that may be refused, and cases that onnxruntime does not judge; each with its reason.
REFUSED = {
    "BatchNormalization": "training mode before opset 14 is refused by name",
}
UNJUDGED = {
    "test_maxunpool_export_with_output_shape": "onnxruntime counts in the output shape, ONNX in the one before",
}
# Cases whose numbers are random: their types and shapes are compared.
RANDOM = ("test_bernoulli", "test_training_dropout")
ABSOLUTE = {"DFT": 1e-3}  # sums of hundreds, in float32 there


def is_random(name):
    """Whether a case draws random numbers; a dropout that drops nothing does not."""
    return name.startswith(RANDOM) and "zero_ratio" not in name


def expected(case):
    """What onnxruntime computes; None where it does not take the model."""
    from tests.suite.peer import Session

    try:
        return Session(case.model).run(list(case.feeds.values()))
    except Exception:  # its errors have no common class
        return None


@pytest.mark.parametrize("pair", list(pairs()), ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_older_form_gives_what_onnxruntime_gives(pair):
    judged = 0
    for case in pairs()[pair]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = expected(case)
        is_judged = wanted is not None and all(isinstance(value, np.ndarray) for value in wanted)
        if case.name in UNJUDGED or not is_judged:
            continue
        try:
            executable = asc.compile(case.model, mode="host", threads=1)
            got = list(executable.run(case.feeds).values())
        except (NotImplementedError, asc.GraphError):
            if pair[0] in REFUSED:
                continue
            raise
        judged += 1
        for ours, theirs in zip(got, wanted, strict=True):
            assert ours.shape == theirs.shape, case.name
            assert ours.dtype == theirs.dtype, case.name
            if is_random(case.name):
                continue
            if theirs.dtype.kind in "biuO":
                np.testing.assert_array_equal(ours, theirs, case.name)
            else:
                half = theirs.dtype.itemsize == 2
                tolerance = 1e-2 if half else 1e-4
                absolute = ABSOLUTE.get(pair[0], tolerance)
                wide = [value.astype(np.float64) for value in (ours, theirs)]
                np.testing.assert_allclose(*wide, rtol=tolerance, atol=absolute, err_msg=case.name)
    if judged == 0:
        pytest.skip("onnxruntime takes none of the cases")
