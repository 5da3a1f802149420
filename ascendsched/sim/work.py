"""What a task has to do, in operations and bytes, and how long a device needs for it by the roofline model.

Roofline: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ascendsched.sim.cost_profile import CostProfile
from ascendsched.tasks import Operand, Task

BITS = "MatMulNBits"  # whose weights are codes in bytes, while it multiplies real numbers
PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose", "MatMulInteger", "ConvInteger", "QLinearMatMul", BITS})
# Their steps multiply by their second and third input, once for every entry of the batch.
RECURRENT = frozenset({"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"})
# They read of their first input only what they write.
PICKERS = frozenset({"Gather", "Slice", "GatherElements", "GatherND", "Expand", "Tile"})
# Operations per element of the larger of input and output; everything else counts one.
PER_ELEMENT = {
    "Softmax": 8,
    "LayerNormalization": 8,
    "RMSNormalization": 6,
    "Sigmoid": 6,
    "Gelu": 12,
    "Erf": 8,
    "DFT": 20,  # 2.5 times the logarithm of a frame's length
    "STFT": 20,
}

SIZES = {"float64": 8, "int64": 8, "uint64": 8, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2}
ONE_BYTE = frozenset({"int8", "uint8", "bool"})


@dataclass(frozen=True)
class Work:
    """Operations on the matrix unit and on the vector unit, bytes of memory, and whether the product is of int8."""

    matrix: float
    vector: float
    bytes: float
    is_int8: bool = False


def elements(operand: Operand | None) -> int:
    """How many elements an operand holds; 0 for an absent one."""
    return 0 if operand is None else math.prod(operand.shape)


def size_of(dtype: str, float_bytes: int) -> int:
    """Bytes of one element. float32, in which the core computes half precision, counts `float_bytes`."""
    if dtype == "float32":
        return float_bytes
    return 1 if dtype in ONE_BYTE else SIZES.get(dtype, 4)


def work_of(task: Task, float_bytes: int = 4) -> Work:
    """The work of a task.

    Parameters
    ----------
    task : Task
        With the shapes of its run.
    float_bytes : int
        What one float32 of the graph takes on the device: 2 where that keeps it in half precision.
    """
    ops = task.parts or (task.op,)
    product = next((op for op in ops if op in PRODUCTS), None)
    inputs, outputs = task.inputs, task.outputs
    written = sum(elements(o) * size_of(o.dtype, float_bytes) for o in outputs if o)
    read = sum(elements(i) * size_of(i.dtype, float_bytes) for i in inputs if i)
    if task.op in PICKERS:
        read = written
    widest = max([elements(o) for o in (*inputs, *outputs) if o and not (product and o.is_constant)], default=0)
    out = elements(outputs[0]) if outputs else 0
    vector = sum(PER_ELEMENT.get(op, 1) for op in ops if op not in PRODUCTS) * (out if product else widest)
    matrix = _product_operations(product, task) if product else 0.0
    if task.op in RECURRENT and len(inputs) > 2 and inputs[0] is not None:
        steps, batch = inputs[0].shape[:2]
        matrix = 2.0 * steps * batch * (elements(inputs[1]) + elements(inputs[2]))
    is_int8 = product not in (None, BITS) and any(i is not None and i.dtype in ONE_BYTE for i in inputs)
    return Work(matrix, vector, read + written, is_int8)


def _product_operations(op: str, task: Task) -> float:
    """2 x results x length of the sums; of a fused node, whose first constant of rank 2 or more is the product's."""
    present = [i for i in task.inputs if i is not None and len(i.shape) >= 2]
    result = task.outputs[0] if task.outputs else None
    if not present or result is None:
        return 0.0
    weights = next((i for i in present if i.is_constant), None)
    if op.startswith("Conv"):
        weights = weights or present[-1]
        return 2.0 * elements(result) * (elements(weights) / max(1, weights.shape[1 if op == "ConvTranspose" else 0]))
    length = present[0].shape[-1]
    if task.parts and weights is not None and op != BITS:  # its first input need not be the product's
        rows, columns = weights.shape[-2:]
        length = columns if result.shape[-1:] == (rows,) and rows != columns else rows
    return 2.0 * elements(result) * length


def kernel_ns(work: Work, profile: CostProfile) -> int:
    """How long the kernel takes: the slowest of its units, and never less than the device's shortest kernel."""
    c = profile.costs
    peak = c["matrix_int8_tops"] if work.is_int8 else c["matrix_tflops"]
    matrix = work.matrix / (peak * 1e3 * c["matrix_efficiency"])
    vector = work.vector / (c["vector_tflops"] * 1e3)
    memory = work.bytes / (c["memory_gbps"] * c["memory_efficiency"])
    return round(max(matrix, vector, memory, c["kernel_us"] * 1e3))


def collective_ns(size_bytes: float, ranks: int, profile: CostProfile) -> int:
    """An all-reduce: 2 (n-1)/n of the bytes over each link, and a tree of hops (Thakur et al., IJHPCA 19(1), 2005)."""
    if ranks < 2:
        return 0
    hops = 2 * math.ceil(math.log2(ranks))
    moved = 2 * (ranks - 1) / ranks * size_bytes
    return round(hops * profile.costs["collective_us"] * 1e3 + moved / profile.costs["link_gbps"])
