"""The demo's models are valid ONNX, and their results agree with onnxruntime, each other and NumPy."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ascendsched.demo.models import decoder, decoder_reference, resnet18
from ascendsched.errors import GraphError

SMALL = {"vocab": 50, "d": 32, "layers": 2, "heads": 4, "kv_heads": 2, "ff": 40, "seed": 3}


def session(model):
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime runs the model and is not installed")
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    runner = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in runner.get_outputs()]
    return lambda feeds: dict(zip(names, runner.run(None, feeds), strict=True))


def empty_past(sizes, batch):
    shape = (batch, sizes["kv_heads"], 0, sizes["d"] // sizes["heads"])
    return {f"past_{kind}_{i}": np.zeros(shape, np.float32) for i in range(sizes["layers"]) for kind in "kv"}


def as_past(outputs):
    return {name.replace("present", "past"): value for name, value in outputs.items() if name != "logits"}


@pytest.mark.parametrize("model", [decoder(), decoder(capacity=16), resnet18(), resnet18(shape=(2, 3, 64, 96))])
def test_models_pass_the_onnx_checker(model):
    import onnx

    onnx.checker.check_model(model, full_check=True)


def test_same_seed_gives_the_same_bytes_and_another_seed_does_not():
    first = decoder(**SMALL).SerializeToString(deterministic=True)
    assert first == decoder(**SMALL).SerializeToString(deterministic=True)
    assert first != decoder(**{**SMALL, "seed": 4}).SerializeToString(deterministic=True)


def test_default_decoder_has_the_work_of_an_exported_one():
    counts = Counter(node.op_type for node in decoder().graph.node)
    assert counts["MatMul"] == 37  # nine in each of four layers, and the head
    assert counts["Softmax"] == counts["Sigmoid"] == 4
    assert 250 <= sum(counts.values()) <= 350


def test_growing_decoder_agrees_with_the_numpy_reference_token_by_token():
    run = session(decoder(**SMALL))
    tokens = np.random.default_rng(0).integers(0, SMALL["vocab"], (2, 9))
    expected = decoder_reference(tokens, **SMALL)
    outputs = run({"input_ids": tokens[:, :4], **empty_past(SMALL, 2)})
    np.testing.assert_allclose(outputs["logits"], expected[:, :4], rtol=1e-4, atol=1e-4)
    for position in range(4, 9):
        outputs = run({"input_ids": tokens[:, position : position + 1], **as_past(outputs)})
        np.testing.assert_allclose(outputs["logits"][:, 0], expected[:, position], rtol=1e-4, atol=1e-4)
    assert outputs["present_k_1"].shape == (2, SMALL["kv_heads"], 9, 8)


def test_fixed_cache_agrees_with_the_growing_one_up_to_its_capacity():
    capacity = 8
    growing, fixed = session(decoder(**SMALL)), session(decoder(**SMALL, capacity=capacity))
    tokens = np.random.default_rng(1).integers(0, SMALL["vocab"], capacity)
    past = empty_past(SMALL, 1)
    cache = {name.replace("past", "cache"): np.zeros((1, SMALL["kv_heads"], capacity, 8), np.float32) for name in past}
    for position, token in enumerate(tokens):
        ids = np.array([[token]])
        grown = growing({"input_ids": ids, **past})
        updated = fixed({"input_ids": ids, "position": np.array([position]), **cache})
        np.testing.assert_allclose(updated["logits"], grown["logits"], rtol=1e-4, atol=1e-5)
        past = as_past(grown)
        cache = {name.replace("updated", "cache"): value for name, value in updated.items() if name != "logits"}
        np.testing.assert_allclose(cache["cache_v_1"][:, :, : position + 1], past["past_v_1"], rtol=1e-4, atol=1e-5)
        assert not cache["cache_v_1"][:, :, position + 1 :].any()


def test_fixed_cache_has_only_static_shapes():
    model = decoder(capacity=16)
    for value in [*model.graph.input, *model.graph.output]:
        assert all(dim.dim_value > 0 for dim in value.type.tensor_type.shape.dim)


def test_resnet_takes_any_batch_and_size_and_spreads_its_logits():
    run = session(resnet18(seed=1))
    rng = np.random.default_rng(0)
    for batch, height, width in ((1, 64, 64), (2, 97, 65)):
        logits = run({"x": rng.standard_normal((batch, 3, height, width), np.float32)})["logits"]
        assert logits.shape == (batch, 1000)
        assert np.isfinite(logits).all()
        assert 0.01 < logits.std() < 100


def test_resnet_agrees_with_the_reference_evaluator():
    reference = pytest.importorskip("onnx.reference")
    model = resnet18(shape=(1, 3, 32, 32))
    x = np.random.default_rng(0).standard_normal((1, 3, 32, 32), np.float32)
    expected = reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(session(model)({"x": x})["logits"], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("sizes", [{"heads": 3, "kv_heads": 2}, {"d": 20}, {"layers": 0}, {"capacity": 0}])
def test_sizes_that_do_not_fit_are_refused(sizes):
    with pytest.raises(GraphError, match=r"^\[decoder\]"):
        decoder(**sizes)


def test_resnet_shape_that_does_not_fit_is_refused():
    with pytest.raises(GraphError, match=r"^\[resnet18\]"):
        resnet18(shape=(1, 4, 32, 32))
