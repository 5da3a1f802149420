"""Operators that draw random numbers: the right distribution, others at every run, and with a seed the same ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto
from onnx import helper as h

import ascendsched as asc

MODES = ("host", "sink", "auto")
MANY = np.zeros((500, 401), np.float32)


def model(*nodes: object, results: dict[str, int] | None = None, element: int = TensorProto.FLOAT) -> ModelProto:
    x = h.make_tensor_value_info("x", element, ["a", "b"])
    outputs = [h.make_tensor_value_info(n, t, None) for n, t in (results or {"y": TensorProto.FLOAT}).items()]
    graph = h.make_graph(list(nodes), "random", [x], outputs)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)


def philox(key: int, blocks: int) -> NDArray[np.uint32]:
    """Philox 4x32-10 of blocks 0, 1, ... under a key."""
    mask = np.uint64(0xFFFFFFFF)
    c = [np.arange(blocks, dtype=np.uint64), *(np.zeros(blocks, np.uint64) for _ in range(3))]
    k = [np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32)]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ k[0], b & mask, (a >> np.uint64(32)) ^ c[3] ^ k[1], a & mask]
        k = [(k[0] + np.uint64(0x9E3779B9)) & mask, (k[1] + np.uint64(0xBB67AE85)) & mask]
    return np.stack(c, axis=1).astype(np.uint32).ravel()


def test_the_reference_gives_the_published_numbers() -> None:
    assert [f"{n:08x}" for n in philox(0, 1)] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


@pytest.mark.sanitize
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("threads", [1, 2])
def test_seeded_numbers_are_those_of_the_generator(mode: str, threads: int) -> None:
    exe = asc.compile(
        model(h.make_node("RandomUniformLike", ["x"], ["y"], seed=3.5, low=-1.0, high=3.0)), mode=mode, threads=threads
    )
    key = int(np.float32(3.5).view(np.uint32))
    for shape in ((1, 1), (2, 3), (16, 16), (401, 1000), (2, 3)):
        wanted = (philox(key, (shape[0] * shape[1] + 3) // 4)[: shape[0] * shape[1]] >> 8) * 2.0**-24 * 4.0 - 1.0
        got = exe.run({"x": np.zeros(shape, np.float32)})["y"]
        np.testing.assert_allclose(got, wanted.reshape(shape), atol=1e-6)
    assert exe.run({"x": np.zeros((0, 4), np.float32)})["y"].shape == (0, 4)


@pytest.mark.parametrize("mode", MODES)
def test_normal_numbers_have_their_moments(mode: str) -> None:
    exe = asc.compile(model(h.make_node("RandomNormalLike", ["x"], ["y"], mean=2.0, scale=3.0)), mode=mode, threads=1)
    z = (exe.run({"x": MANY})["y"].astype(np.float64) - 2) / 3
    error = 6 / np.sqrt(z.size)  # six standard errors of the mean
    assert [z.mean(), z.var(), (z**3).mean(), (z**4).mean()] == pytest.approx([0, 1, 0, 3], abs=10 * error)
    assert abs(z.mean()) < error
    assert (abs(z) < 1).mean() == pytest.approx(0.682689, abs=error)
    assert abs(np.corrcoef(z.ravel()[:-1], z.ravel()[1:])[0, 1]) < error


@pytest.mark.parametrize("mode", MODES)
def test_every_run_and_every_node_draws_anew(mode: str) -> None:
    nodes = [h.make_node("RandomNormalLike", ["x"], [name]) for name in "yz"]
    nodes.append(h.make_node("RandomUniform", [], ["constant"], shape=[8]))
    results = dict.fromkeys(("y", "z", "constant"), TensorProto.FLOAT)
    exe = asc.compile(model(*nodes, results=results), mode=mode, threads=1)
    x = np.zeros((3, 7), np.float32)
    runs = [exe.run({"x": x}) for _ in range(6)]
    for name in results:
        assert len({run[name].tobytes() for run in runs}) == len(runs)
    assert not np.array_equal(runs[0]["y"], runs[0]["z"])


def test_each_step_of_a_loop_draws_anew() -> None:
    body = h.make_graph(
        [h.make_node("RandomUniform", [], ["drawn"], shape=[4]), h.make_node("Identity", ["go"], ["still"])],
        "body",
        [h.make_tensor_value_info("i", TensorProto.INT64, []), h.make_tensor_value_info("go", TensorProto.BOOL, [])],
        [h.make_tensor_value_info("still", TensorProto.BOOL, []), h.make_tensor_value_info("drawn", 1, [4])],
    )
    count = h.make_node("Constant", [], ["count"], value_int=5)
    exe = asc.compile(model(count, h.make_node("Loop", ["count", ""], ["y"], body=body)), threads=1)
    rows = exe.run({"x": MANY[:1, :1]})["y"]
    assert len({row.tobytes() for row in rows}) == 5


@pytest.mark.parametrize(("number", "name"), [(1, "float32"), (10, "float16"), (11, "float64")])
def test_types_and_shapes(number: int, name: str) -> None:
    nodes = [
        h.make_node("RandomNormal", [], ["y"], shape=[2, 0, 3], dtype=number),
        h.make_node("RandomUniformLike", ["x"], ["z"], dtype=number),
        h.make_node("RandomUniformLike", ["z"], ["like"]),
    ]
    exe = asc.compile(model(*nodes, results=dict.fromkeys(("y", "z", "like"), number), element=TensorProto.INT64))
    y, z, like = exe.run({"x": np.zeros((4, 5), np.int64)}).values()
    assert (y.dtype, y.shape) == (name, (2, 0, 3))
    assert (z.dtype, z.shape) == (like.dtype, like.shape) == (name, (4, 5))
    assert ((z >= 0) & (z <= 1)).all()


def test_chances_of_zero_and_one_are_certain() -> None:
    exe = asc.compile(model(h.make_node("Bernoulli", ["x"], ["y"])), threads=1)
    chances = np.repeat(np.array([0, 1, 0.25, 1e-3], np.float32)[:, None], 40_000, axis=1)
    y = exe.run({"x": chances})["y"]
    assert set(np.unique(y)) == {0, 1}
    assert [y[0].sum(), y[1].sum()] == [0, 40_000]
    assert y[2].mean() == pytest.approx(0.25, abs=0.015)
    assert y[3].mean() == pytest.approx(1e-3, abs=1e-3)


def test_classes_are_drawn_by_their_chances() -> None:
    node = h.make_node("Multinomial", ["x"], ["y"], sample_size=20_000, dtype=TensorProto.INT64)
    exe = asc.compile(model(node, results={"y": TensorProto.INT64}), threads=1)
    with np.errstate(divide="ignore"):
        logits = np.log(np.array([[0.1, 0.2, 0.3, 0.4], [5, 0, 0, 15]], np.float32))
    y = exe.run({"x": logits})["y"]
    shares = [np.bincount(row, minlength=4) / row.size for row in y]
    np.testing.assert_allclose(shares, [[0.1, 0.2, 0.3, 0.4], [0.25, 0, 0, 0.75]], atol=0.02)
    assert shares[1][1] == shares[1][2] == 0


@pytest.mark.parametrize("is_constant", [True, False])
def test_dropout_in_training_mode_keeps_the_mean(is_constant: bool) -> None:
    x, training = (h.make_tensor_value_info(n, t, None) for n, t in (("x", TensorProto.FLOAT), ("t", TensorProto.BOOL)))
    outputs = [h.make_tensor_value_info("y", TensorProto.FLOAT, None), h.make_tensor_value_info("m", 9, None)]
    constants = [h.make_tensor("r", TensorProto.FLOAT, [], [0.2])]
    if is_constant:
        constants.append(h.make_tensor("t", TensorProto.BOOL, [], [True]))
    node = h.make_node("Dropout", ["x", "r", "t"], ["y", "m"])
    graph = h.make_graph([node], "dropout", [x] if is_constant else [x, training], outputs, constants)
    exe = asc.compile(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9), threads=1)
    feeds = {"x": MANY + 2}
    y, mask = exe.run(feeds if is_constant else feeds | {"t": np.array(True)}).values()
    np.testing.assert_allclose(y, np.where(mask, np.float32(2.5), 0))
    assert mask.mean() == pytest.approx(0.8, abs=0.01)
    if not is_constant:
        y, mask = exe.run(feeds | {"t": np.array(False)}).values()
        assert (y == 2).all()
        assert mask.all()


def test_saved_executables_draw_anew(tmp_path: Path) -> None:
    exe = asc.compile(model(h.make_node("RandomNormalLike", ["x"], ["y"])), mode="sink", threads=1)
    exe.run({"x": MANY})
    exe.save(tmp_path / "noise.asc")
    drawn = [asc.load(tmp_path / "noise.asc").run({"x": MANY})["y"].tobytes() for _ in range(2)]
    assert drawn[0] != drawn[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_draws_other_numbers_than_its_parent() -> None:
    noise = model(h.make_node("RandomNormalLike", ["x"], ["y"]))
    x = np.zeros((4, 4), np.float32)

    def draw() -> bytes:
        return asc.compile(noise, mode="host", threads=1).run({"x": x})["y"].tobytes()

    draw()
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(theirs, draw())
        finally:
            os._exit(0)
    os.close(theirs)
    drawn = os.read(ours, 4096)
    os.waitpid(child, 0)
    os.close(ours)
    assert len(drawn) == x.nbytes
    assert drawn != draw()


@pytest.mark.parametrize(
    ("node", "what"),
    [
        (h.make_node("RandomNormal", [], ["y"]), "shape.*missing"),
        (h.make_node("RandomUniform", [], ["y"], shape=[2, -1]), "shape is"),
        (h.make_node("RandomUniform", [], ["y"], shape=[2], dtype=7), "dtype is 7"),
        (h.make_node("RandomNormalLike", ["x"], ["y"]), "no dtype is given"),
        (h.make_node("Multinomial", ["x"], ["y"], sample_size=0), "sample_size is 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.op_type,
)
def test_malformed_nodes_are_refused(node: object, what: str) -> None:
    with pytest.raises(asc.GraphError, match=what):
        asc.compile(model(node, element=TensorProto.INT64))
