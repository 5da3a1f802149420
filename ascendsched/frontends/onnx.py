"""Reads ONNX models: files, bytes or ``ModelProto``, opset 1 to 28."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.adapters import ADAPTERS
from ascendsched.frontends.node import GraphTarget
from ascendsched.frontends.onnx_expand import expanded
from ascendsched.frontends.onnx_functions import inlined
from ascendsched.frontends.onnx_graph import Scope
from ascendsched.frontends.onnx_import import ModelImport
from ascendsched.frontends.onnx_tensors import TensorReader
from ascendsched.frontends.onnx_types import declared_results
from ascendsched.frontends.onnx_wire import Weights, cut

if TYPE_CHECKING:
    import onnx

    from ascendsched.native import core as _core

_Graph = TypeVar("_Graph", bound=GraphTarget)

OLDEST_OPSET = 1
_TOO_DEEP = "[onnx] the bodies of the model's nodes are nested too deep; flatten them"
NEWEST_OPSET = 28  # every change of the operators up to here has its adapter, or needs none


def load(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    files: dict[Path, os.stat_result] | None = None,
    kinds: dict[str, str] | None = None,
    results: dict[str, tuple[int | str | None, ...]] | None = None,
) -> _core.Graph:
    """Return the graph of an ONNX model, in operators of the newest opset.

    Parameters
    ----------
    model
        Path of a file (its external data are read from its folder, never from elsewhere), the bytes of one, or a
        ``ModelProto``, which is not changed.
    files
        Takes the files that were read, the model's own first, as they were then.
    kinds
        Takes the kinds of inputs and outputs that are packed values in the graph (`ascendsched.packed`), by name.
    results
        Takes the shapes of outputs that the model declares, by name.

    Raises
    ------
    GraphError
        Where the file is missing, damaged or incomplete.
    UnsupportedError
        Where the model uses operators or types that the core does not have; the message lists all such operators.
    """
    from ascendsched.native import core as _core

    return import_model(model, _core.Graph, _core.op_names(), files, kinds, results)


def import_model(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    make_graph: Callable[[str], _Graph],
    known_ops: Iterable[str],
    files: dict[Path, os.stat_result] | None = None,
    kinds: dict[str, str] | None = None,
    results: dict[str, tuple[int | str | None, ...]] | None = None,
) -> _Graph:
    """Do what `load` does, into any graph that has the building functions of ``_core.Graph``."""
    weights, ops = Weights(), frozenset(known_ops)
    proto, folder, opset = read_model(model, ops, files, weights)
    try:
        shared = ModelImport(proto, opset, ops, make_graph, TensorReader(folder, files, weights))
        scope = Scope(shared, proto.graph)
        graph = scope.build()
    except RecursionError:
        raise GraphError(_TOO_DEEP) from None
    if shared.unknown:
        raise UnsupportedError(_unknown_operators(shared.unknown, opset))
    if kinds is not None:
        kinds.update(scope.packed_ends())
    if results is not None:
        results.update(declared_results(proto.graph))
    return cast(_Graph, graph)


def read_model(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    known_ops: frozenset[str],
    files: dict[Path, os.stat_result] | None = None,
    weights: Weights | None = None,
) -> tuple[onnx.ModelProto, Path | None, int]:
    """Return the model with its functions inlined, the folder of its external data, and its opset.

    Parameters
    ----------
    model, files
        As for `load`.
    known_ops
        Operators of the core; others that ONNX defines by simpler ones are expanded.
    weights
        Takes the contents of large initializers, which are not in the model then; None: they stay there.

    Raises
    ------
    GraphError, UnsupportedError
        As `load`.
    """
    proto, folder = _read(model, {} if files is None else files, weights)
    opset = _opset(proto)
    if proto.functions:
        proto = inlined(proto)
    try:
        return expanded(proto, opset, lambda node: _is_own(node, known_ops)), folder, opset
    except RecursionError:
        raise GraphError(_TOO_DEEP) from None


def _is_own(node: onnx.NodeProto, known_ops: frozenset[str]) -> bool:
    """Return whether the core can do a node by itself."""
    if node.op_type == "LayerNormalization":
        return not any(node.output[1:])  # the core has no mean and deviation to give
    return node.op_type in known_ops or node.op_type in ADAPTERS


def _read(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    files: dict[Path, os.stat_result],
    weights: Weights | None,
) -> tuple[onnx.ModelProto, Path | None]:
    """Return the model and the folder of its external data."""
    import onnx

    if isinstance(model, onnx.ModelProto):
        return _checked(model, "model"), None
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _parsed(memoryview(bytes(model)), "bytes", weights), None
    if not isinstance(model, (str, os.PathLike)):
        raise GraphError(f"[onnx] a model is a path, bytes or a ModelProto, got {type(model).__name__}")
    path = Path(os.fsdecode(model))
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "does not exist"
            raise GraphError(f"[onnx] '{path}' {what}; pass the path of an .onnx file")
        files[path] = path.stat()
        data = _mapped(path)
    except GraphError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        why = error.strerror if isinstance(error, OSError) else error
        raise GraphError(f"[onnx] cannot read '{path}': {why}; check its permissions") from None
    return _parsed(data, f"'{path}'", weights), path.parent


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _parsed(data: memoryview, what: str, weights: Weights | None) -> onnx.ModelProto:
    import onnx

    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(bytes(data if weights is None else cut(data, weights)))
    except Exception:  # protobuf's DecodeError, whose package has no type stubs
        raise GraphError(
            f"[onnx] {what} ({len(data)} bytes) is not an ONNX model, or is truncated; export or copy it again"
        ) from None
    return _checked(proto, what)


def _checked(proto: onnx.ModelProto, what: str) -> onnx.ModelProto:
    if not proto.HasField("graph") or not proto.graph.output:
        raise GraphError(f"[onnx] {what} holds no graph with outputs; the file is damaged or is not an ONNX model")
    return proto


def _opset(proto: onnx.ModelProto) -> int:
    """Return the version of the default domain."""
    import onnx.defs

    versions: set[int] = {entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")}
    if not versions and proto.ir_version < 3 and not proto.opset_import:
        versions = {1}  # files that are older than the declaration
    if not versions and not any(node.domain in ("", "ai.onnx") for node in proto.graph.node):
        versions = {min(NEWEST_OPSET, onnx.defs.onnx_opset_version())}
    if len(versions) != 1:
        raise GraphError(
            f"[onnx] the model declares {len(versions)} versions {sorted(versions)} of its operators instead of one; "
            "the file is damaged"
        )
    (version,) = versions
    newest = min(NEWEST_OPSET, onnx.defs.onnx_opset_version())
    if not OLDEST_OPSET <= version <= newest:
        raise UnsupportedError(
            f"[onnx] opset {version} is not supported, {OLDEST_OPSET} to {newest} are with onnx {onnx.__version__}; "
            "convert the model with onnx.version_converter, or install a newer onnx"
        )
    return version


def _unknown_operators(unknown: dict[str, list[str]], opset: int) -> str:
    parts = [f"{op} (nodes: {len(names)}, first: '{names[0]}')" for op, names in sorted(unknown.items())]
    return (
        f"[onnx] the model uses operators that are not supported in opset {opset}: {', '.join(parts)}; "
        "export the model without them, or add them as CONTRIBUTING.md shows"
    )
