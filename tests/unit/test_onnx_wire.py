"""Weights are cut out of a file before protobuf reads it, and the model is the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import ascendsched as asc
from ascendsched.frontends.onnx_wire import Weights, cut

from . import onnx_models as models

LARGE = 128  # width of a layer whose weights are cut


def cut_bytes(data: bytes) -> tuple[bytes, Weights]:
    weights = Weights()
    return bytes(cut(memoryview(data), weights)), weights


def test_what_is_left_parses_to_the_same_model_with_tickets() -> None:
    model = models.mlp(width=LARGE)
    rest, weights = cut_bytes(model.SerializeToString())
    assert len(rest) < 5000
    parsed = onnx.ModelProto.FromString(rest)
    for tensor in parsed.graph.initializer:
        tensor.raw_data = bytes(weights.find(tensor.raw_data))
    assert parsed == model


def test_small_weights_stay() -> None:
    data = models.mlp(width=16).SerializeToString()
    assert cut_bytes(data)[0] == data


def test_a_ticket_of_another_model_is_only_bytes() -> None:
    ticket = Weights().add(memoryview(b"secret"))
    assert Weights().find(ticket) == ticket


@pytest.mark.parametrize("in_file", [True, False])
def test_cut_weights_give_the_same_results(in_file: bool, tmp_path) -> None:
    model = models.mlp(width=LARGE)
    if in_file:
        onnx.save(model, tmp_path / "model.onnx")
    feeds = {"x": np.random.default_rng(0).standard_normal((3, LARGE)).astype(np.float32)}
    expected = asc.compile(model, threads=1).run(feeds)["y"]
    source = tmp_path / "model.onnx" if in_file else model.SerializeToString()
    assert np.array_equal(asc.compile(source, threads=1).run(feeds)["y"], expected)


def test_a_cut_weight_of_the_wrong_size_is_refused() -> None:
    model = models.mlp(width=LARGE)
    model.graph.initializer[0].raw_data += b"\0\0\0\0"
    with pytest.raises(asc.GraphError, match="16385 values"):
        asc.compile(model.SerializeToString())


def test_damaged_files_are_left_to_protobuf() -> None:
    data = models.mlp(width=LARGE).SerializeToString()
    rng = np.random.default_rng(5)
    for _ in range(300):
        damaged = bytearray(data[: rng.integers(1, len(data))])
        damaged[int(rng.integers(min(len(damaged), 400)))] = int(rng.integers(256))
        try:
            asc.compile(bytes(damaged), threads=1)
        except asc.AscendSchedError:
            continue


def test_a_repeated_graph_or_content_is_left_to_protobuf() -> None:
    data = models.mlp(width=LARGE).SerializeToString()
    assert cut_bytes(data + data)[0] == data + data
