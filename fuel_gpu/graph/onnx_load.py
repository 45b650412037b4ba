"""Turns a model's file into a graph: settles its dimensions, then walks it."""

from collections.abc import Mapping

import onnx

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import Graph
from fuel_gpu.graph.onnx_contents import Contents
from fuel_gpu.graph.onnx_dims import InputDims, settle_inputs
from fuel_gpu.graph.onnx_file import LIBRARY_ERRORS, ModelFile
from fuel_gpu.graph.onnx_infer import Inference
from fuel_gpu.graph.onnx_outputs import Model
from fuel_gpu.graph.onnx_rebatch import ADVICE, Rebatch
from fuel_gpu.graph.onnx_schemas import Schemas
from fuel_gpu.graph.onnx_types import PartialType, partial_type
from fuel_gpu.graph.onnx_walk import Walk


def load_model(file: ModelFile, batch: int | None, dims: Mapping[str, int]) -> Graph:
    """Make the typed graph of a model that was read.

    A model that fixes its batch is walked twice: as it is, then with the batch asked for.

    Raises
    ------
    ModelError
        If the model is damaged, or a shape in it stays unknown.
    UsageError
        If `batch` or `dims` do not fit the model.
    """
    try:
        return _loaded(file, batch, dims)
    except ModelError as error:
        if file.path.name in str(error):
            raise
        raise ModelError(f"{file.path.name}: {error}") from None
    except (UnicodeDecodeError, RecursionError, MemoryError, *LIBRARY_ERRORS) as error:
        raise ModelError(
            f"{file.path} cannot be read ({type(error).__name__}: {error}): it is damaged; "
            "download or export it again"
        ) from error


def _loaded(file: ModelFile, batch: int | None, dims: Mapping[str, int]) -> Graph:
    graph = file.model.graph
    settled = settle_inputs(graph, batch, dims, file.path.name)
    if batch is None or settled.fixed_batch in (None, batch):
        return _walk(file, settled, None).graph
    own = settle_inputs(graph, None, dims, file.path.name)
    before = _walk(file, own, None)
    try:
        return _walk(file, settled, Rebatch(settled.fixed_batch, batch, before.values)).graph
    except ModelError as error:
        if ADVICE in str(error):
            raise
        built_in = f"batch {settled.fixed_batch} is built into it; {ADVICE}"
        raise ModelError(f"{error}: {built_in}") from None


def _walk(file: ModelFile, inputs: InputDims, rebatch: Rebatch | None) -> Walk:
    graph = file.model.graph
    contents = Contents(file.path.parent, file.opsets, file.skipped)
    declared = _declared(graph, inputs.symbols, rebatch)
    schemas = Schemas(file.opsets)
    inference = Inference(schemas, contents, declared)
    walk = Walk(Model(file.path.name, schemas, inference, contents, rebatch), graph)
    for name, tensor_type in inputs.types.items():
        walk.add_input(name, tensor_type)
    walk.run()
    sizes_fixed = rebatch is None and not inputs.symbols
    _check_outputs(walk, inference.declared, sizes_fixed, file.path.name)
    return walk


def _check_outputs(
    walk: Walk, declared: Mapping[str, PartialType], sizes_fixed: bool, title: str
) -> None:
    """Hold the outputs to the types that the model states for them.

    Sizes count only where the file fixes all those of the inputs: exporters often leave an output
    at the size of their example, although the input's is open.
    """
    for output in walk.proto.output:
        value, stated = walk.values[output.name], declared.get(output.name)
        if value.sequence is not None or stated is None:
            continue
        found, shape = value.type, stated.shape
        differs = stated.dtype not in (None, found.dtype)
        if shape is not None and not value.bounded:
            differs |= len(shape) != len(found.shape)
            pairs = zip(shape, found.shape, strict=False)
            differs |= sizes_fixed and any(s not in (None, f) for s, f in pairs)
        if differs:
            raise ModelError(
                f"output {output.name} of {title} is stated as {_shown(stated)}, but its nodes "
                f"give {_shown(PartialType(found.dtype, found.shape))}: the model is damaged; "
                "export it again"
            )


def _shown(kind: PartialType) -> str:
    shape = "any rank" if kind.shape is None else [d if d is not None else "?" for d in kind.shape]
    return f"{kind.dtype or 'any type'} {shape}"


def _declared(
    graph: onnx.GraphProto, symbols: Mapping[str, int], rebatch: Rebatch | None
) -> dict[str, PartialType]:
    """Give the types that the model states for values, named dimensions replaced by numbers.

    With another batch, a leading dimension that was the batch is taken to be it still.
    """
    declared = {}
    for value in (*graph.value_info, *graph.output):
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        stated = partial_type(value.type, f"value {value.name}")
        if stated.shape is not None:
            dims = zip(stated.shape, value.type.tensor_type.shape.dim, strict=True)
            shape = tuple(symbols.get(d.dim_param) if s is None else s for s, d in dims)
            if rebatch and shape[:1] == (rebatch.old,):
                shape = (rebatch.new, *shape[1:])
            stated = PartialType(stated.dtype, shape)
        declared[value.name] = stated
    return declared
