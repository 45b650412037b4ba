"""A strict double of CuPy that runs on NumPy, counts, and refuses what CuPy would refuse.

It has only the names that the installed CuPy has and takes only the arguments that they take; its
arrays do not mix with NumPy's and do not turn into them unasked. `Counts` tells how many kernels
were launched and how often the host waited for a result. It must be able to fail: the tests of
this double hold that it does.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

_AT_DTYPES = {"int32", "float32", "float64", "uint32", "uint64"}
_AT_FOR = {
    "minimum": _AT_DTYPES,
    "maximum": _AT_DTYPES,
    "bitwise_or": {"int32", "int64", "uint32", "uint64"},
}
_WAITS = {"flatnonzero": 1, "nonzero": 1, "bincount": 2, "unique": 1, "asnumpy": 1}
_NO_LAUNCH = {"reshape", "view", "transpose", "get", "tolist", "item", "ravel"}
_NO_LAUNCH_FUNCTIONS = {"empty", "empty_like", "asarray", "iinfo", "asnumpy"}


@dataclass
class Counts:
    """Kernel launches, waits of the host for the device, and uploads."""

    launches: int = 0
    waits: int = 0
    uploads: int = 0


class StrictArray:
    """An array of the double."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # arrays compare elementwise

    def __init__(self, data: Any, counts: Counts) -> None:
        self._data = np.asarray(data)
        self._counts = counts

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed; use .get()")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Mark the array as one of a GPU's."""
        return {}

    @property
    def T(self) -> "StrictArray":  # noqa: N802  # the array's own name
        """The transposed view."""
        return StrictArray(self._data.T, self._counts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(cupy.ndarray, name):
            raise AttributeError(f"cupy.ndarray has no {name}")
        if name == "get":
            return self._to_host
        attribute = getattr(self._data, name)
        if not callable(attribute):
            return attribute

        def method(*args: Any, **kwargs: Any) -> Any:
            if name in {"tolist", "item"}:
                self._counts.waits += 1
                return attribute(*args, **kwargs)
            result = attribute(*_bare(args), **{k: _bare(v) for k, v in kwargs.items()})
            # What gives the array itself, as `astype` without a copy may, runs no kernel.
            self._counts.launches += name not in _NO_LAUNCH and result is not self._data
            return self._wrap(result)

        return method

    def _to_host(self) -> Any:
        self._counts.waits += 1
        return self._data.copy()

    def _wrap(self, result: Any) -> Any:
        if isinstance(result, np.ndarray | np.generic):
            return StrictArray(result, self._counts)
        return result

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator["StrictArray"]:
        return (StrictArray(row, self._counts) for row in self._data)

    def _scalar(self, convert: Callable[[Any], Any]) -> Any:
        self._counts.waits += 1
        return convert(self._data)

    def __bool__(self) -> bool:
        return bool(self._scalar(bool))

    def __int__(self) -> int:
        return int(self._scalar(int))

    def __float__(self) -> float:
        return float(self._scalar(float))

    def __index__(self) -> int:
        return int(self._scalar(lambda data: data.__index__()))

    def __invert__(self) -> "StrictArray":
        self._counts.launches += 1
        return StrictArray(~self._data, self._counts)

    def _key(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        bare = []
        advanced = False
        for part in parts:
            if isinstance(part, np.ndarray | list):
                raise IndexError(f"cannot index with {type(part)}")
            if isinstance(part, StrictArray):
                advanced = True
                if part.dtype.kind == "b":
                    self._counts.waits += 1
            bare.append(_bare(part))
        self._counts.launches += advanced
        return tuple(bare) if isinstance(key, tuple) else bare[0]

    def __getitem__(self, key: Any) -> "StrictArray":
        return StrictArray(self._data[self._key(key)], self._counts)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._counts.launches += 1
        self._data[self._key(key)] = _bare(value)


def _bare(value: Any) -> Any:
    """Take the NumPy array out of a strict one; a bare NumPy array is refused."""
    if isinstance(value, StrictArray):
        return value._data
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, tuple | list):
        return type(value)(_bare(each) for each in value)
    return value


def _binary(name: str) -> Callable[[StrictArray, Any], StrictArray]:
    def operate(self: StrictArray, other: Any) -> StrictArray:
        self._counts.launches += 1
        result = getattr(self._data, name)(_bare(other))
        if name.startswith("__i"):
            return self
        return StrictArray(result, self._counts)

    return operate


_OPERATORS = """
    add sub mul truediv floordiv mod and or xor lshift rshift lt le gt ge eq ne
    radd rsub rmul rtruediv rand ror rxor rlshift rrshift iadd isub imul iand ior ixor ilshift
"""
for _name in _OPERATORS.split():
    setattr(StrictArray, f"__{_name}__", _binary(f"__{_name}__"))


class _Function:
    """A function of the double: checked against CuPy's signature, run by NumPy, counted."""

    def __init__(self, name: str, counts: Counts) -> None:
        self._name, self._counts = name, counts
        self._numpy, self._cupy = getattr(np, name), getattr(cupy, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._name == "asarray":
            return self._asarray(*args, **kwargs)
        if not isinstance(self._cupy, cupy.ufunc) and self._name != "iinfo":
            inspect.signature(self._cupy).bind(*args, **kwargs)
        if self._name in {"argsort", "sort"} and kwargs.get("kind") not in {None, "stable"}:
            raise ValueError("kind can only be None or 'stable'")
        self._counts.launches += self._name not in _NO_LAUNCH_FUNCTIONS
        self._counts.waits += _WAITS.get(self._name, 0)
        result = self._numpy(*_bare(args), **{k: _bare(v) for k, v in kwargs.items()})
        if isinstance(result, tuple):
            return tuple(StrictArray(each, self._counts) for each in result)
        if isinstance(result, np.ndarray | np.generic):
            return StrictArray(result, self._counts)
        return result

    def _asarray(self, data: Any, dtype: Any = None) -> StrictArray:
        if isinstance(data, StrictArray):
            return data if dtype is None else StrictArray(data._data.astype(dtype), self._counts)
        self._counts.uploads += 1
        return StrictArray(np.array(data, dtype=dtype), self._counts)

    def at(self, target: StrictArray, indices: StrictArray, values: Any) -> None:
        """Scatter with duplicates, for the dtypes that CuPy has atomics for."""
        if str(target.dtype) not in _AT_FOR[self._name]:
            raise TypeError(f"cupy.{self._name}.at does not support {target.dtype}")
        self._counts.launches += 1
        self._numpy.at(_bare(target), _bare(indices), _bare(values))

    def accumulate(self, *_: object, **__: object) -> Any:
        """Refuse: CuPy accumulates by addition only."""
        raise NotImplementedError(f"`cupy_{self._name}.accumulate` is not supported yet")


class StrictCupy:
    """The module: the names of CuPy, and no others."""

    def __init__(self) -> None:
        self.counts = Counts()

    def __getattr__(self, name: str) -> Any:
        theirs = getattr(cupy, name, None)
        if theirs is None:
            raise AttributeError(f"cupy has no {name}")
        mine = getattr(np, name)
        if isinstance(mine, type) and name != "iinfo":
            return mine  # dtypes: CuPy's are NumPy's
        return _Function(name, self.counts) if callable(mine) else mine
