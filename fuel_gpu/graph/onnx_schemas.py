"""Operator definitions of a model's operator sets: attributes checked, defaults filled in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import onnx
from onnx.defs import OpSchema, SchemaError

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.onnx_attributes import default_attributes, given_attributes, qualified_op


@dataclass(frozen=True, slots=True)
class _Definition:
    """One operator: its schema if the onnx library knows it, and what its attributes may be."""

    schema: OpSchema | None
    defaults: Mapping[str, Any]
    kinds: Mapping[str, int]
    required: tuple[str, ...]


_KINDS: Final = {
    getattr(OpSchema.AttrType, name): number
    for name, number in onnx.AttributeProto.AttributeType.items()
    if hasattr(OpSchema.AttrType, name)
}
"""AttributeProto's number of each kind of attribute that a schema can name."""

_NOT_KNOWN: Final = _Definition(None, {}, {}, ())


@dataclass(slots=True)
class Schemas:
    """Looks operators up in the versions that a model imports.

    Parameters
    ----------
    opsets
        Operator set version by domain.
    """

    opsets: Mapping[str, int]
    _found: dict[tuple[str, str], _Definition] = field(default_factory=dict)

    def schema(self, domain: str, op_type: str) -> OpSchema | None:
        """Give an operator's schema, or None if the onnx library has none."""
        return self._definition(domain, op_type).schema

    def attributes(self, node: onnx.NodeProto) -> dict[str, Any]:
        """Give a node's attributes, with the operator's defaults for those not stated.

        Raises
        ------
        ModelError
            If one is of another kind than the operator takes, or one that it needs is missing.
        """
        definition = self._definition(node.domain, node.op_type)
        stated = set()
        for attribute in node.attribute:
            stated.add(attribute.name)
            if definition.kinds.get(attribute.name, attribute.type) != attribute.type:
                raise ModelError(_wrong(node, f"attribute {attribute.name} of another kind than"))
        missing = [name for name in definition.required if name not in stated]
        if missing:
            raise ModelError(_wrong(node, f"no attribute {', '.join(missing)}, which it needs by"))
        return {**definition.defaults, **given_attributes(node)}

    def _definition(self, domain: str, op_type: str) -> _Definition:
        key = ("" if domain == "ai.onnx" else domain, op_type)
        if key not in self._found:
            self._found[key] = self._look_up(*key)
        return self._found[key]

    def _look_up(self, domain: str, op_type: str) -> _Definition:
        version = self.opsets.get(domain)
        if version is None or not 0 < version < 2**31:
            return _NOT_KNOWN
        try:
            schema = onnx.defs.get_schema(op_type, version, domain)
        except (SchemaError, TypeError):  # TypeError: a damaged name, which is no text
            return _NOT_KNOWN
        return _Definition(
            schema,
            default_attributes(schema),
            {name: _KINDS[a.type] for name, a in schema.attributes.items()},
            tuple(name for name, a in schema.attributes.items() if a.required),
        )


def _wrong(node: onnx.NodeProto, what: str) -> str:
    title = node.name or next((o for o in node.output if o), "without a name")
    return (
        f"node {title} ({qualified_op(node)}) has {what} the operator's definition: "
        "the model is damaged; export it again"
    )
