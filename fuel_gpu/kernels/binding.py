"""The binding table: which kernels can run an operation on a backend, and what they promise."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from fuel_gpu.dtypes import UNIT_ROUNDOFF
from fuel_gpu.graph.arena import Graph, Node, NodeId, TensorType
from fuel_gpu.kernels.claims import claim
from fuel_gpu.kernels.costs import operands_of
from fuel_gpu.kernels.families import Family, family_of
from fuel_gpu.kernels.precision import UNAUDITED, PrecisionGuarantee
from fuel_gpu.kernels.terms import summed_terms


@dataclass(frozen=True, slots=True)
class Kernel:
    """One way to run an operation.

    Parameters
    ----------
    name
        Backend, family and compute dtype: ``cuda.conv.tf32``.
    backend
        The backend whose devices it runs on.
    dtype
        The dtype it computes in: a row of the device's rates. Tensors keep the model's dtype;
        the kernel converts as it reads and writes.
    """

    name: str
    backend: str
    dtype: str


@dataclass(frozen=True, slots=True)
class _Added:
    """A kernel that a user registered, for the operators and stored dtypes it serves."""

    kernel: Kernel
    ops: frozenset[str]
    dtypes: frozenset[str]
    precision: PrecisionGuarantee


_EVERYWHERE: Final[frozenset[Family]] = frozenset(
    {
        "conv",
        "matmul",
        "elementwise",
        "normalisation",
        "softmax",
        "pooling",
        "reduction",
        "movement",
    }
)
_ON_OPENCL: Final[frozenset[Family]] = _EVERYWHERE | {"resample", "scatter", "random"}
_ON_CUDA: Final[frozenset[Family]] = _ON_OPENCL | {
    "attention",
    "recurrent",
    "fourier",
    "sort",
    "quantised",
}
_WITH_TF32: Final[frozenset[Family]] = frozenset({"conv", "matmul"})
_ALTERNATIVES: Final[frozenset[Family]] = _EVERYWHERE - {"movement"} | {
    "attention",
    "recurrent",
    "resample",
    "fourier",
}
"""Families with a kernel for each compute dtype; the others work in the dtype that is stored."""

_FLOATING: Final[dict[str, tuple[str, ...]]] = {
    "cpu": ("float32", "float64"),
    "cuda": ("float32", "tf32", "float16", "bfloat16", "float64"),
    "opencl": ("float32", "float16", "float64"),
    "vulkan": ("float32", "float16"),
    "metal": ("float32", "float16"),
}
"""Compute dtypes for tensors of float32, by backend, in the order in which they are offered."""


@dataclass(frozen=True, slots=True)
class BindingTable:
    """Kernels by operator, stored dtype and backend; immutable.

    Parameters
    ----------
    deterministic
        Whether cuda's convolutions and products are held to algorithms that give the same bits
        again on the same hardware. Their libraries do not promise it by default, so without
        this no bit stability is claimed for them.
    """

    deterministic: bool = False
    _added: tuple[_Added, ...] = ()
    _found: dict[tuple[str, str, str], tuple[Kernel, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _promised: dict[tuple[Kernel, str], PrecisionGuarantee] = field(
        default_factory=dict, compare=False, repr=False
    )

    def kernels(
        self, node: Node, input_types: tuple[TensorType, ...], backend: str
    ) -> tuple[Kernel, ...]:
        """List the kernels that can run a node, in registration order.

        Parameters
        ----------
        node
            The operation.
        input_types
            The types of its inputs, in order.
        backend
            ``cpu``, ``cuda``, ``opencl``, ``vulkan``, ``metal`` or a plugin's.

        Returns
        -------
        tuple of Kernel
            Empty if that backend has none.
        """
        stored = stored_dtype(node, input_types)
        key = (node.op, stored, backend)
        found = self._found.get(key)
        if found is None:
            added = tuple(
                a.kernel
                for a in self._added
                if a.kernel.backend == backend and node.op in a.ops and stored in a.dtypes
            )
            found = self._found[key] = (*_shipped(node.op, stored, backend), *added)
        return found

    def with_kernel(
        self,
        kernel: Kernel,
        ops: Iterable[str],
        dtypes: Iterable[str] = ("float32",),
        precision: PrecisionGuarantee = UNAUDITED,
    ) -> "BindingTable":
        """Give a table that also has `kernel`, for these operators on tensors of these dtypes."""
        added = _Added(kernel, frozenset(ops), frozenset(dtypes), precision)
        return replace(self, _added=(*self._added, added), _found={}, _promised={})

    def precision(self, kernel: Kernel, graph: Graph, node_id: NodeId) -> PrecisionGuarantee:
        """State what a kernel promises about a node's result."""
        node = graph.node(node_id)
        if self._added and not self._promised:
            for added in self._added:
                for op in added.ops:
                    self._promised.setdefault((added.kernel, op), added.precision)
        promised = self._promised.get((kernel, node.op))
        if promised is not None:
            return promised
        if node.bodies:
            return self._of_bodies(kernel, node)
        operands = operands_of(graph, node_id)
        return claim(
            family_of(node.op),
            node.op,
            kernel.backend,
            kernel.dtype,
            stored_dtype(node, operands.inputs),
            summed_terms(operands),
            self.deterministic,
        )

    def _of_bodies(self, kernel: Kernel, node: Node) -> PrecisionGuarantee:
        """Promise for control flow the same bits again if every kernel of its bodies does."""
        stable = True
        for body in node.bodies:
            for inner_id in body.topological_order():
                inner = body.node(inner_id)
                if inner.kind != "kernel":
                    continue
                types = tuple(body.node(i).type for i in inner.inputs)
                stored = stored_dtype(inner, types)
                found = self.kernels(inner, types, kernel.backend)
                own = [each for each in found if each.dtype == stored] or list(found)
                stable &= any(
                    self.precision(each, body, inner_id).bit_stable_on_same_hardware for each in own
                )
        return PrecisionGuarantee(stable, notes="as stable as the kernels of its bodies")


def default_bindings(*, deterministic: bool = False) -> BindingTable:
    """Give the shipped table.

    cpu runs every operator. cuda runs all but control flow, whose next body only the host can
    choose, what lives in host memory (sequences, strings, trees), and operators unknown here.
    opencl further lacks attention, recurrent layers, sorting, Fourier transforms and quantised
    products; vulkan and metal have the eight plain families, for float32 and float16.

    Parameters
    ----------
    deterministic
        See `BindingTable`.
    """
    return BindingTable(deterministic)


def stored_dtype(node: Node, input_types: tuple[TensorType, ...]) -> str:
    """Give the dtype of the tensors that decide how a node computes.

    The output's if it is a floating one (Where, DequantizeLinear, OneHot), else the first
    input's (comparisons, ArgMax, QuantizeLinear), unless that is only a mask.
    """
    output = node.type.dtype
    if output in UNIT_ROUNDOFF or not input_types or input_types[0].dtype == "bool":
        return output
    return input_types[0].dtype


def _shipped(op: str, stored: str, backend: str) -> tuple[Kernel, ...]:
    family = family_of(op)
    return tuple(
        Kernel(f"{backend}.{family}.{dtype}", backend, dtype)
        for dtype in _compute_dtypes(family, stored, backend)
    )


def _compute_dtypes(family: Family, stored: str, backend: str) -> tuple[str, ...]:
    offered = _FLOATING.get(backend)
    if offered is None or not _has(backend, family, stored):
        return ()
    if family not in _ALTERNATIVES or stored not in UNIT_ROUNDOFF:
        return (stored,)
    if stored == "float64":
        return ("float64",) if "float64" in offered else ()
    if stored == "float32":
        return tuple(d for d in offered if d != "tf32" or family in _WITH_TF32)
    return tuple(d for d in (stored, "float32") if d in offered or backend == "cpu")


def _has(backend: str, family: Family, stored: str) -> bool:
    """Whether a backend has the family at all, for tensors of that dtype."""
    if backend == "cpu":
        return True
    if stored == "string":
        return False
    if backend == "cuda":
        return family in _ON_CUDA
    if backend == "opencl":
        return family in _ON_OPENCL and not stored.startswith("complex")
    return family in _EVERYWHERE and (family == "movement" or stored in ("float32", "float16"))
