"""`load_onnx`: an ONNX model as a typed graph in which every shape is known."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from fuel_gpu.errors import UsageError
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
        If an argument is of another type, or `batch` or `dims` do not fit the model.
    """
    from fuel_gpu.graph.onnx_file import read_model
    from fuel_gpu.graph.onnx_load import load_model

    if not isinstance(path, str | PathLike):
        raise UsageError(f"path={path!r} is no path: name the .onnx file")
    if not str(path):
        raise UsageError("the path is empty: name the .onnx file")
    if dims is not None and not (isinstance(dims, Mapping) and all(type(n) is str for n in dims)):
        raise UsageError(f"dims={dims!r} is no mapping of dimension names to sizes")
    return load_model(read_model(Path(path)), batch, dims or {})
