"""If, Loop and Scan: one node each, carrying its bodies; or the branch that is always taken."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import NodeId, TensorType
from fuel_gpu.graph.onnx_attributes import body_attributes
from fuel_gpu.graph.onnx_values import Value, sequence_type

if TYPE_CHECKING:
    from fuel_gpu.graph.onnx_walk import Walk

Inputs = Sequence[Value | None]


def visit_control(walk: "Walk", node: onnx.NodeProto, inputs: Inputs, where: str) -> None:
    """Read a node that holds nested graphs.

    Raises
    ------
    ModelError
        If it is none of If, Loop and Scan, or its bodies do not fit.
    """
    walk.model.schemas.attributes(node)  # refuses a node that lacks a body
    if node.op_type == "If":
        _visit_if(walk, node, inputs, where)
    elif node.op_type == "Loop":
        _visit_loop(walk, node, inputs, where)
    elif node.op_type == "Scan" and walk.model.schemas.opsets.get("", 0) >= 9:
        _visit_scan(walk, node, inputs, where)
    else:
        raise ModelError(
            f"{where} holds a nested graph that is not understood; convert the model to opset 9 "
            "or later (onnx.version_converter), or export it without this operator"
        )


def _visit_if(walk: "Walk", node: onnx.NodeProto, inputs: Inputs, where: str) -> None:
    bodies = body_attributes(node)
    branches = [bodies["then_branch"], bodies["else_branch"]]
    condition = inputs[0]
    taken = None if condition is None else walk.model.contents.of(condition)
    if taken is not None:
        _inline(walk, node, branches[0] if taken.any() else branches[1])
        return
    walks = [w for body in branches if (w := _possible(walk, body)) is not None]
    if len(walks) < len(branches):
        # Shapes rule one branch out (or both, and walking it again says why): the other is taken.
        _inline(walk, node, walks[0].proto if walks else branches[0])
        return
    outputs: list[Value | None] = []
    for k, name in enumerate(node.output):
        ends = [inner.result(k) for inner in walks]
        differ = ends[0].type != ends[1].type
        larger = max(ends, key=lambda v: v.type.elements)
        bounded = differ or any(v.bounded for v in ends)
        outputs.append(Value(name, larger.type, True, bounded, larger.sequence) if name else None)
    _finish(walk, node, inputs, outputs, walks, {})


def _possible(walk: "Walk", body: onnx.GraphProto) -> "Walk | None":
    """Walk a branch; None if it cannot be with the shapes at hand."""
    inner = walk.child(body)
    try:
        inner.run()
    except ModelError:
        return None
    return inner


def _inline(walk: "Walk", node: onnx.NodeProto, body: onnx.GraphProto) -> None:
    for name, value in zip(node.output, walk.inline(body), strict=True):
        walk.values[name] = value


def _visit_loop(walk: "Walk", node: onnx.NodeProto, inputs: Inputs, where: str) -> None:
    """Inputs: trip count, condition, carried values; outputs: carried values, then scans."""
    body = body_attributes(node)["body"]
    carried = list(inputs[2:])
    if len(body.input) != len(carried) + 2 or len(body.output) < len(carried) + 1:
        raise ModelError(f"{where}: its body does not take what it is given; the model is damaged")
    inner = walk.child(body)
    inner.add_input(body.input[0].name, TensorType("int64", ()))
    condition = inner.add_input(body.input[1].name, TensorType("bool", ()))
    unchanged = _unchanged(body, 2, 1)
    for k, value in enumerate(carried):
        _enter_carried(inner, body.input[2 + k].name, value, unchanged[k], where)
    inner.run()
    trips, may_be_fewer = _trip_count(walk, inner, inputs, condition)
    outputs: list[Value | None] = []
    for k, name in enumerate(node.output):
        if not name:
            outputs.append(None)
        elif k < len(carried):
            out = _carried_out(name, carried[k], inner.result(1 + k), trips)
            out.bounded |= may_be_fewer and out.sequence is not None
            outputs.append(out)
        else:
            each = inner.result(1 + k)
            times = 1 if trips is None else trips
            stacked = TensorType(each.type.dtype, (times, *each.type.shape))
            bounded = trips is None or may_be_fewer or each.bounded
            outputs.append(Value(name, stacked, True, bounded))
    extra: dict[str, object] = {"trip_count": trips}
    if may_be_fewer:
        extra["trip_count_is_bound"] = True
    _finish(walk, node, inputs, outputs, [inner], extra)


def _visit_scan(walk: "Walk", node: onnx.NodeProto, inputs: Inputs, where: str) -> None:
    """Inputs: states, then tensors read slice by slice; outputs: states, then stacked slices."""
    body = body_attributes(node)["body"]
    attributes = walk.model.schemas.attributes(node)
    scanned = int(attributes["num_scan_inputs"])
    states = len(inputs) - scanned
    if states < 0 or len(body.input) != len(inputs) or len(body.output) < states:
        raise ModelError(f"{where}: its body does not take what it is given; the model is damaged")
    in_axes = attributes.get("scan_input_axes") or [0] * scanned
    inner = walk.child(body)
    trips = 1
    for k, value in enumerate(inputs):
        if value is None or k < states:
            _enter_carried(inner, body.input[k].name, value, False, where)
            continue
        shape = value.type.shape
        axis = in_axes[k - states] % max(len(shape), 1)
        trips = shape[axis]
        inner.add_input(
            body.input[k].name, TensorType(value.type.dtype, (*shape[:axis], *shape[axis + 1 :]))
        ).bounded = value.bounded
    inner.run()
    out_axes = attributes.get("scan_output_axes") or [0] * (len(node.output) - states)
    outputs: list[Value | None] = []
    for k, name in enumerate(node.output):
        each = inner.result(k)
        shape = each.type.shape
        if k >= states:
            axis = out_axes[k - states] % (len(shape) + 1)
            shape = (*shape[:axis], trips, *shape[axis:])
        stacked = TensorType(each.type.dtype, shape)
        outputs.append(Value(name, stacked, True, each.bounded) if name else None)
    _finish(walk, node, inputs, outputs, [inner], {"trip_count": trips})


def _finish(
    walk: "Walk",
    node: onnx.NodeProto,
    inputs: Inputs,
    outputs: Sequence[Value | None],
    inner: Sequence["Walk"],
    extra: dict[str, object],
) -> None:
    """Emit the node; it also reads what its bodies capture, and holds the weights they hold."""
    for value in outputs:
        if value is not None:
            walk.enter(value)
    read: dict[NodeId, None] = {}
    for each in inner:
        for value in each.captured.values():
            read[walk.node_of(value)] = None
        for value in each.stored:
            read[walk.push_stored(value)] = None
            walk.stored.append(value)
    given = {walk.node_of(v) for v in inputs if v is not None}
    also = [n for n in read if n not in given]
    bodies = tuple(each.graph for each in inner)
    walk.emit(node, inputs, outputs, also_reads=also, bodies=bodies, extra=extra)


def _enter_carried(
    inner: "Walk", name: str, value: Value | None, unchanged: bool, where: str
) -> None:
    """Enter a carried value; one that no iteration changes keeps the contents it has."""
    if value is None:
        raise ModelError(f"{where} lacks a value that its body carries; the model is damaged")
    if unchanged and not value.dynamic:
        inner.values[name] = Value(name, value.type, False, value.bounded, origin=value)
        return
    entered = inner.add_input(name, value.type)
    entered.bounded, entered.sequence = value.bounded, value.sequence


def _unchanged(body: onnx.GraphProto, first_in: int, first_out: int) -> list[bool]:
    """Say of each carried value whether the body hands it on as it came."""
    same = {node.output[0]: node.input[0] for node in body.node if node.op_type == "Identity"}
    result = []
    for k in range(len(body.input) - first_in):
        out = body.output[first_out + k].name
        result.append(same.get(out, out) == body.input[first_in + k].name)
    return result


def _trip_count(
    walk: "Walk", inner: "Walk", inputs: Inputs, condition: Value
) -> tuple[int | None, bool]:
    """Give the trip count, None where data may end the loop, and whether it may not begin.

    A condition that each iteration hands on as it came is tested once in effect: before the
    first.
    """
    limit, first = inputs[0], inputs[1] if len(inputs) > 1 else None
    count = None if limit is None else walk.model.contents.of(limit)
    if count is None:
        return None, False
    start = None if first is None else walk.model.contents.of(first)
    if start is not None and not start.any():
        return 0, False
    end = inner.result(0)
    always = inner.model.contents.of(end)
    passed_on = end.node_id is not None and inner.graph.storage(end.node_id) == condition.node_id
    if passed_on or (always is not None and bool(always.any())):
        trips = max(int(count.reshape(-1)[0]), 0)
        return trips, trips > 0 and first is not None and start is None
    return None, False


def _carried_out(name: str, start: Value | None, end: Value, trips: int | None) -> Value:
    """Give a carried value after the loop; what grows in one iteration grows so in each."""
    assert start is not None
    times = 1 if trips is None else trips
    if end.sequence is not None:
        begun = start.sequence or ()
        grown = (*begun, *end.sequence[len(begun) :] * times)
        bounded = end.bounded or trips is None or any(t != grown[0] for t in grown)
        return Value(name, sequence_type(grown), True, bounded, grown)
    before, after = start.type.shape, end.type.shape
    if before == after or len(before) != len(after):
        return Value(name, end.type, True, end.bounded or len(before) != len(after))
    shape = tuple(max(b + times * (a - b), 0) for b, a in zip(before, after, strict=True))
    return Value(name, TensorType(end.type.dtype, shape), True, True)
