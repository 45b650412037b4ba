"""Plugins for the tests: modules, and the metadata that an installed package would bring."""

import textwrap
from collections.abc import Mapping
from pathlib import Path


def write_plugins(folder: Path, sources: Mapping[str, str]) -> None:
    """Write a folder that, on the path, registers probes: entry point name -> module source."""
    entries = {}
    for number, (backend, source) in enumerate(sources.items()):
        module = f"plugin_module_{number}"
        (folder / f"{module}.py").write_text(textwrap.dedent(source))
        entries[backend] = module
    write_entry_points(folder, "test-plugins", entries)


def write_entry_points(folder: Path, distribution: str, entries: Mapping[str, str]) -> None:
    """Write a distribution's metadata under ``fuel_gpu.probes``: entry point name -> its value."""
    metadata = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\n")
    lines = [f"{name} = {value}" for name, value in entries.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[fuel_gpu.probes]", *lines]))
