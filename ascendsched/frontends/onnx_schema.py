"""What the ONNX operator schemas say a node of a given opset must look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ascendsched.errors import GraphError

if TYPE_CHECKING:
    import onnx


class _Rules(NamedTuple):
    min_inputs: int
    max_inputs: int
    min_outputs: int
    max_outputs: int
    attributes: dict[str, int]  # name: AttributeProto.AttributeType
    required: frozenset[str]
    optional_outputs: frozenset[int]


class Schemas:
    """Schemas of the default domain at one opset, looked up once for each operator."""

    def __init__(self, opset: int) -> None:
        self._opset = opset
        self._rules: dict[str, _Rules | None] = {}

    def has(self, op: str) -> bool:
        """Return whether the opset has the operator, deprecated ones included."""
        return self._find(op) is not None

    def check(self, proto: onnx.NodeProto, where: str) -> None:
        """Refuse a node whose arity or attributes its schema does not allow.

        Raises
        ------
        GraphError
            With the node's name and what is wrong.
        """
        rules = self._find(proto.op_type)
        if rules is None:
            return
        inputs, outputs = proto.input, proto.output
        if len(inputs) < rules.min_inputs or _exceeds(inputs, rules.max_inputs):
            raise GraphError(
                f"{where}: {len(inputs)} inputs, its opset has {rules.min_inputs} to {rules.max_inputs}; "
                "the file is damaged or declares the wrong opset"
            )
        if len(outputs) < rules.min_outputs or _exceeds(outputs, rules.max_outputs):
            raise GraphError(
                f"{where}: {len(outputs)} outputs, its opset has {rules.min_outputs} to {rules.max_outputs}; "
                "the file is damaged or declares the wrong opset"
            )
        present = set()
        for attribute in proto.attribute:
            name = attribute.name
            expected = rules.attributes.get(name)
            if expected is None or attribute.type not in (expected, 0) or name in present:
                raise GraphError(
                    f"{where}: attribute '{name}' is repeated, unknown or of the wrong type, its opset has "
                    f"{sorted(rules.attributes)}; the file is damaged or declares the wrong opset"
                )
            present.add(name)
        if not rules.required <= present:
            raise GraphError(f"{where}: attributes {sorted(rules.required - present)} are missing; the file is damaged")

    def inputs(self, proto: onnx.NodeProto) -> list[str]:
        """Return a node's inputs without the absent ones past the last that its opset has."""
        rules = self._find(proto.op_type)
        return list(proto.input if rules is None else proto.input[: rules.max_inputs])

    def is_optional_output(self, op: str, index: int) -> bool:
        """Return whether an operator may leave the output away."""
        rules = self._find(op)
        return rules is not None and index in rules.optional_outputs

    def _find(self, op: str) -> _Rules | None:
        if op not in self._rules:
            self._rules[op] = _look_up(op, self._opset)
        return self._rules[op]


def _look_up(op: str, opset: int) -> _Rules | None:
    import onnx

    if not onnx.defs.has(op, opset):
        return None
    schema = onnx.defs.get_schema(op, opset)
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    return _Rules(
        schema.min_input,
        schema.max_input,
        schema.min_output,
        schema.max_output,
        {name: int(cast(Any, attribute.type)) for name, attribute in schema.attributes.items()},
        frozenset(name for name, attribute in schema.attributes.items() if attribute.required),
        frozenset(index for index, output in enumerate(schema.outputs) if output.option == optional),
    )


def _exceeds(names: Sequence[str], limit: int) -> bool:
    """Return whether there are more names than that; trailing absent ones do not count."""
    return len(names) > limit and any(names[limit:])
