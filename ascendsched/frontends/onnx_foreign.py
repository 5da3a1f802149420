"""Operators that others compute, unless simpler ones can: adapters of ai.onnx.ml, then the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ascendsched.errors import AscendSchedError, GraphError
from ascendsched.frontends import adapters_linear as linear
from ascendsched.frontends import adapters_trees as trees
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.onnx_attributes import attributes_of
from ascendsched.frontends.onnx_import import ModelImport
from ascendsched.frontends.onnx_reference import OPERATORS as REFERENCE
from ascendsched.frontends.onnx_reference import host_call

if TYPE_CHECKING:
    import onnx

_ADAPTERS: dict[str, Callable[[NodeDef, AdapterContext], list[NodeDef] | None]] = {
    "ai.onnx.ml::Imputer": linear.imputer,
    "ai.onnx.ml::LinearClassifier": linear.linear_classifier,
    "ai.onnx.ml::LinearRegressor": linear.linear_regressor,
    "ai.onnx.ml::Normalizer": linear.normalizer,
    "ai.onnx.ml::Scaler": linear.scaler,
    "ai.onnx.ml::TreeEnsembleClassifier": trees.tree_classifier,
    "ai.onnx.ml::TreeEnsembleRegressor": trees.tree_regressor,
}
OPERATORS = REFERENCE | _ADAPTERS.keys()


def foreign_nodes(proto: onnx.NodeProto, op: str, name: str, ctx: AdapterContext, shared: ModelImport) -> list[NodeDef]:
    """Return the nodes for one of ``OPERATORS``.

    Raises
    ------
    GraphError
        Where what the node holds does not fit its operator.
    UnsupportedError
        For what neither an adapter nor the reference computes as the specification says.
    """
    if adapter := _ADAPTERS.get(op):
        where = f"[onnx] node '{name}' ({op})"
        node = NodeDef(op, list(proto.input), list(proto.output), attributes_of(proto, shared.reader, where), name)
        try:
            nodes = adapter(node, ctx)
        except AscendSchedError:
            raise
        except (IndexError, KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise GraphError(
                f"{where}: its attributes do not fit the operator ({error}); the file is damaged"
            ) from None
        if nodes is not None:
            return nodes
    return [host_call(proto, op, name, ctx, shared.domains)]
