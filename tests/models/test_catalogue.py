"""Real models, judged against onnxruntime. The catalogue lies beside the project; without it these tests skip."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import ascendsched as asc

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")

CATALOGUE = Path(__file__).resolve().parents[3] / "shared" / "models" / "catalog.py"
MODELS = ["resnet18_legacy", "llama_tiny_legacy", "hf_llama_dynamo", "hf_gpt2_legacy", "silero_vad"]


@pytest.fixture(scope="module")
def catalogue():
    if not CATALOGUE.is_file():
        pytest.skip(f"no model catalogue at {CATALOGUE.name}: these models are not part of the project")
    spec = importlib.util.spec_from_file_location("model_catalogue", CATALOGUE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["model_catalogue"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
@pytest.mark.parametrize("name", MODELS)
def test_real_models_agree_with_onnxruntime(catalogue, name, mode, threads):
    try:
        path, feeds = catalogue.load(name)
    except (FileNotFoundError, ImportError) as e:
        pytest.skip(f"model not installed: {e}")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    exe = asc.compile(path, mode=mode, threads=threads)
    first = []
    for feed in feeds:
        got = exe.run(feed)
        for output, want in zip(session.get_outputs(), session.run(None, feed), strict=True):
            assert got[output.name].shape == want.shape
            assert got[output.name].dtype == want.dtype
            np.testing.assert_allclose(
                got[output.name], want, rtol=1e-4, atol=1e-4 * max(1e-12, np.abs(want).max(initial=0))
            )
        first.append(got)
    for feed, before in zip(feeds, first, strict=True):
        again = exe.run(feed)
        assert all(np.array_equal(again[k], before[k]) for k in before)
