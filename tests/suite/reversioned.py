"""Cases of the suite put back to older opsets: the suite itself holds only the newest form of each operator."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

OLDEST = 7
CASES_OF_A_PAIR = 6


class Case(NamedTuple):
    """A model of one node and its feeds."""

    name: str
    model: onnx.ModelProto
    feeds: dict[str, Any]


@cache
def pairs() -> dict[tuple[str, int], list[Case]]:
    """Cases by operator and the version that it had in their opset."""
    found: dict[tuple[str, int], list[Case]] = collections.defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    for test in tests:
        if test.model is None or len(test.model.graph.node) != 1 or test.model.graph.node[0].domain:
            continue
        for version, case in _older(test):
            kept = found[test.model.graph.node[0].op_type, version]
            if len(kept) < CASES_OF_A_PAIR:
                kept.append(case)
    return dict(found)


def _older(test: Any) -> Iterator[tuple[int, Case]]:
    model = test.model
    node = model.graph.node[0]
    (opset,) = (entry.version for entry in model.opset_import if entry.domain == "")
    inputs, _ = test.data_sets[0]
    feeds = {info.name: _array(value) for info, value in zip(model.graph.input, inputs, strict=True)}
    newest = onnx.defs.get_schema(node.op_type, opset)
    version = newest.since_version - 1
    while version >= OLDEST and onnx.defs.has(node.op_type, version):
        schema = onnx.defs.get_schema(node.op_type, version)
        made = _with_schema(test.name, model, feeds, newest, schema)
        if made is not None:
            yield schema.since_version, made
        version = schema.since_version - 1


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _with_schema(name: str, model: onnx.ModelProto, feeds: dict[str, Any], new: Any, old: Any) -> Case | None:
    """Put a model back to the opset of ``old``, inputs that were attributes then too; None where that cannot be."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    node = copy.graph.node[0]
    left = dict(feeds)
    for index, parameter in enumerate(new.inputs):
        if parameter.name not in old.attributes or index >= len(node.input) or not node.input[index]:
            continue
        value = left.pop(node.input[index], None)
        if not isinstance(value, (np.ndarray, np.generic)):
            return None
        is_list = old.attributes[parameter.name].type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS)
        plain = np.atleast_1d(value).tolist() if is_list else np.asarray(value).ravel().tolist()[:1]
        if not plain or (not is_list and len(plain) != 1):
            return None
        node.attribute.append(helper.make_attribute(parameter.name, plain if is_list else plain[0]))
        node.input[index] = ""
    while node.input and not node.input[-1]:
        node.input.pop()
    if any(attribute.name not in old.attributes for attribute in node.attribute):
        return None
    kept = [info for info in copy.graph.input if info.name in left]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    for entry in copy.opset_import:
        if entry.domain == "":
            entry.version = old.since_version
    copy.ir_version = min(copy.ir_version, 8)
    return Case(name, copy, left)
