"""Sizes as people write them."""


def size_text(nbytes: int) -> str:
    """Write a size in its largest whole binary unit: ``4 KiB``, ``1.5 MiB``."""
    value, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"
