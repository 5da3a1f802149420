"""Transpositions by kernels of their own: bytes in squares of sixteen, and planes of images into pixels and back."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx import helper as h

import ascendsched as asc

pytestmark = pytest.mark.sanitize


def transposition(element: int, rank: int, perm: list[int]) -> asc.Executable:
    x = h.make_tensor_value_info("x", element, [f"d{i}" for i in range(rank)])
    y = h.make_tensor_value_info("y", element, None)
    graph = h.make_graph([h.make_node("Transpose", ["x"], ["y"], perm=perm)], "turn", [x], [y])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)
    return asc.compile(model, mode="host", threads=1)


def test_bytes_of_all_extents_are_transposed() -> None:
    exe = transposition(TensorProto.UINT8, 3, [0, 2, 1])
    for rows in (1, 2, 15, 16, 17, 31, 33, 48, 65, 129):
        for columns in (1, 15, 16, 17, 32, 47, 64, 65, 130):
            values = np.random.default_rng(rows).integers(0, 256, (2, rows, columns)).astype(np.uint8)
            np.testing.assert_array_equal(exe.run({"x": values})["y"], values.transpose(0, 2, 1))


@pytest.mark.parametrize(("element", "dtype"), [(TensorProto.FLOAT, np.float32), (TensorProto.INT32, np.int32)])
def test_three_planes_become_pixels_and_planes_again(element: int, dtype: type) -> None:
    to_pixels, to_planes = transposition(element, 4, [0, 2, 3, 1]), transposition(element, 4, [0, 3, 1, 2])
    for height, width in [(1, 1), (1, 2), (1, 3), (1, 4), (2, 3), (1, 5), (3, 5), (4, 8), (5, 13), (33, 47)]:
        planes = np.random.default_rng(width).integers(-(2**31), 2**31, (2, 3, height, width)).astype(dtype)
        pixels = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
        np.testing.assert_array_equal(to_pixels.run({"x": planes})["y"], pixels)
        np.testing.assert_array_equal(to_planes.run({"x": pixels})["y"], planes)


def test_three_planes_of_bytes_become_pixels_of_any_number() -> None:
    to_pixels = transposition(TensorProto.UINT8, 3, [0, 2, 1])
    for size in (1, 2, 3, 15, 16, 17, 18, 19, 32, 33, 34, 35, 50, 1551):
        planes = np.random.default_rng(size).integers(0, 256, (2, 3, size)).astype(np.uint8)
        np.testing.assert_array_equal(to_pixels.run({"x": planes})["y"], planes.transpose(0, 2, 1))


def test_two_and_four_planes_take_the_common_way() -> None:
    exe = transposition(TensorProto.FLOAT, 3, [0, 2, 1])
    for planes in (2, 4, 6):
        values = np.random.default_rng(planes).standard_normal((3, planes, 41)).astype(np.float32)
        np.testing.assert_array_equal(exe.run({"x": values})["y"], values.transpose(0, 2, 1))
