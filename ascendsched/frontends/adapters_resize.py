"""Adapters of Upsample and Resize; the table is in ``adapters``."""

from __future__ import annotations

import numpy as np

from ascendsched.errors import UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef


def upsample(node: NodeDef, ctx: AdapterContext) -> None:
    """Upsample is Resize with asymmetric coordinates; its scales are 1 or more by definition."""
    scales = node.attributes.pop("scales", None)
    if scales is not None:
        node.inputs.append(ctx.constant(np.array(scales, np.float32), f"{node.name}_scales"))
    node.op = "Resize"
    _asymmetric(node, "floor")


def resize_10(node: NodeDef, ctx: AdapterContext) -> None:
    """Resize of opset 10 has asymmetric coordinates; nearest takes the floor to grow and the ceiling to shrink.

    The rounding is onnxruntime's, as opset 10 itself leaves it open.
    """
    nearest_mode = "floor"
    if node.attributes.get("mode", "nearest") == "nearest":
        scales = ctx.constant_value(node.inputs[1])
        if scales is None or ((scales.array < 1).any() and (scales.array > 1).any()):
            raise UnsupportedError(
                f"{node.where()}: nearest of opset 10 needs constant scales that all grow or all shrink; "
                "export with opset 11 or newer"
            )
        nearest_mode = "ceil" if (scales.array < 1).any() else "floor"
    _asymmetric(node, nearest_mode)


def resize_11(node: NodeDef, ctx: AdapterContext) -> None:
    """Refuse the one coordinate mode that later opsets dropped."""
    mode = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    if mode == "tf_half_pixel_for_nn":
        raise UnsupportedError(f"{node.where()}: {mode} left ONNX with opset 13; export with a newer opset")


def resize_empty_inputs(node: NodeDef, ctx: AdapterContext) -> None:
    """Exporters write empty constants where roi or scales are absent; make them absent."""
    for index in (1, 2):
        value = ctx.constant_value(node.input(index)) if node.input(index) else None
        if value is not None and value.array.size == 0:
            node.inputs[index] = ""
    if len(node.inputs) > 1 and node.attributes.get("coordinate_transformation_mode") != "tf_crop_and_resize":
        node.inputs[1] = ""


def _asymmetric(node: NodeDef, nearest_mode: str) -> None:
    node.inputs.insert(1, "")
    node.attributes["coordinate_transformation_mode"] = "asymmetric"
    node.attributes["nearest_mode"] = nearest_mode
