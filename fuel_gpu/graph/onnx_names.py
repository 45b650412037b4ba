"""Names that people know nodes by, each given out once."""

from collections.abc import Iterable


class UniqueNames:
    """Gives each node of a graph a name of its own.

    Parameters
    ----------
    reserved
        Names of ONNX nodes: tensors do not take them, so that ``--pin`` finds the node.
    """

    def __init__(self, reserved: Iterable[str]) -> None:
        self._reserved = set(reserved)
        self._taken: set[str] = set()

    def for_node(self, name: str, first_output: str, op: str, node_id: int) -> str:
        """Name an operation: its own name, else its first output's, else its operator's."""
        for wish in (name, first_output):
            if wish and wish not in self._taken:
                return self._take(wish)
        return self._take(self._free(f"{op}_{node_id}"))

    def for_tensor(self, name: str, kind: str) -> str:
        """Name an input, weight, constant or further output after its ONNX tensor."""
        if name and name not in self._taken and name not in self._reserved:
            return self._take(name)
        return self._take(self._free(f"{name}:{kind}"))

    def _free(self, wish: str) -> str:
        name, count = wish, 1
        while name in self._taken:
            count += 1
            name = f"{wish}_{count}"
        return name

    def _take(self, name: str) -> str:
        self._taken.add(name)
        return name
