"""What a model must hold whatever its operators are: names as text, each given once; opsets."""

from collections.abc import Iterator
from functools import lru_cache

import onnx

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.onnx_attributes import body_attributes, describe

_AGAIN = "the model is damaged; export it again"


def check_integrity(model: onnx.ModelProto, title: str) -> None:
    """Refuse a model whose names or operator sets cannot be meant.

    Raises
    ------
    ModelError
        If a name is no text, two values of one graph have one name, or a node's operator set is
        not imported, or imported in a version that does not exist or is not known yet.
    """
    for graph in _graphs(model.graph):
        _check_text(graph, title)
        _check_single_assignment(graph, title)
    _check_opsets(model, title)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    stack = [graph]
    while stack:
        current = stack.pop()
        yield current
        for node in current.node:
            stack.extend(body_attributes(node).values())


def _check_text(graph: onnx.GraphProto, title: str) -> None:
    """A name that is no UTF-8 comes as bytes: it could be neither shown nor asked for."""
    for name in _names(graph):
        if not isinstance(name, str):
            raise ModelError(f"{title} holds the name {name!r}, which is no UTF-8 text: {_AGAIN}")


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
    yield from (sparse.values.name for sparse in graph.sparse_initializer)
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain)
        yield from node.input
        yield from node.output
        yield from (attribute.name for attribute in node.attribute)


def _check_single_assignment(graph: onnx.GraphProto, title: str) -> None:
    """Only an initializer may have the name of an input: it is that input's default."""
    givers: dict[str, str] = {}
    for value in graph.input:
        if value.name in givers:
            raise ModelError(f"{title} has two inputs named {value.name}: {_AGAIN}")
        givers[value.name] = "an input"
    stored: set[str] = set()
    names = [tensor.name for tensor in graph.initializer]
    names += [sparse.values.name for sparse in graph.sparse_initializer]
    for name in names:
        if name in stored:
            raise ModelError(f"{title} has two initializers named {name}: {_AGAIN}")
        stored.add(name)
        givers[name] = "an initializer"
    for node in graph.node:
        for name in filter(None, node.output):
            if name in givers:
                raise ModelError(
                    f"{describe(node, title)} gives {name}, which {givers[name]} gives already: "
                    f"{_AGAIN}"
                )
            givers[name] = f"node {node.name}" if node.name else "another node"


def _check_opsets(model: onnx.ModelProto, title: str) -> None:
    """A domain that no node uses does no harm, whatever its version."""
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        domain = _own_or(entry.domain)
        if versions.setdefault(domain, entry.version) != entry.version:
            raise ModelError(
                f"{title} imports operator set {domain or 'ai.onnx'} in versions "
                f"{versions[domain]} and {entry.version}: {_AGAIN}"
            )
    users = {_own_or(n.domain): n for g in _graphs(model.graph) for n in reversed(g.node)}
    for domain, node in users.items():
        name = domain or "ai.onnx"
        version = versions.get(domain)
        if version is None:
            raise ModelError(
                f"{describe(node, title)} is of operator set {name}, which the model does not "
                f"import: {_AGAIN}"
            )
        if version < 1:
            raise ModelError(
                f"{title} imports version {version} of operator set {name}: versions count from 1; "
                f"{_AGAIN}"
            )
        newest = _newest(domain) if version > 1 else 1
        if newest is not None and version > newest:
            raise ModelError(
                f"{title} imports version {version} of operator set {name}, and the onnx package "
                f"here knows versions up to {newest}: upgrade it (pip install -U onnx), or export "
                "the model at one of those"
            )


def _own_or(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


@lru_cache
def _newest(domain: str) -> int | None:
    """Give the newest version of an operator set that the onnx package knows; None if none."""
    if not domain:
        return onnx.defs.onnx_opset_version()
    known = onnx.defs.get_all_schemas_with_history()
    return max((s.since_version for s in known if s.domain == domain), default=None)
