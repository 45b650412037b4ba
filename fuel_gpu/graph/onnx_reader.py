"""`load_onnx`: an ONNX model as a typed graph in which every shape is known."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from fuel_gpu.graph.arena import Graph


def load_onnx(
    path: str | PathLike[str], *, batch: int | None = None, dims: Mapping[str, int] | None = None
) -> Graph:
    """Read an ONNX model; weights are not read unless a shape depends on them.

    Parameters
    ----------
    path
        The ``.onnx`` file. External data is looked for beside it.
    batch
        The leading dimension that the model's inputs shall have.
    dims
        Sizes of named dimensions; an unnamed open one goes by ``input:axis``.

    Returns
    -------
    Graph
        One node per value, producers first. Reshape-like nodes are views; what depends on no
        input is a constant.

    Raises
    ------
    ModelError
        If the file cannot be read as a model, or a shape stays unknown.
    UsageError
        If `batch` or `dims` do not fit the model.
    """
    from fuel_gpu.graph.onnx_dims import settle_inputs
    from fuel_gpu.graph.onnx_file import read_model
    from fuel_gpu.graph.onnx_infer import Inference
    from fuel_gpu.graph.onnx_names import UniqueNames
    from fuel_gpu.graph.onnx_values import Contents
    from fuel_gpu.graph.onnx_walk import Walk

    file = Path(path)
    model = read_model(file)
    settled = settle_inputs(model.graph, batch, dims or {}, file.name)
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    contents = Contents(file.parent, opsets)
    names = UniqueNames(n.name for n in model.graph.node)
    walk = Walk(Inference(opsets, contents), contents, names, file.name)
    for name, kind in settled.types.items():
        walk.add_input(name, kind)
    walk.add_weights(model.graph)
    walk.run(model.graph)
    return walk.graph
