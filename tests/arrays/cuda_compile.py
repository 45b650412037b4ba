"""Compile CUDA C to PTX by the NVRTC wheel, without a GPU or a driver."""

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path


def nvrtc_or_none() -> Callable[[str, str], str] | None:
    """Give ``(source, compute capability)`` to PTX, or None where there is no NVRTC."""
    library = _library()
    if library is None:
        return None
    nvrtc = ctypes.CDLL(str(library))

    def compiled(source: str, capability: str) -> str:
        program = ctypes.c_void_p()
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None
        )
        options = [f"--gpu-architecture=compute_{capability}".encode(), b"--fmad=false"]
        status = nvrtc.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*options)
        )
        if status:
            raise RuntimeError(_text(nvrtc, program, "ProgramLog"))
        return _text(nvrtc, program, "PTX")

    return compiled


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer.value.decode()


def _library() -> Path | None:
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for found in sorted(Path(root).glob("**/libnvrtc.so*")):
            return found
    return None
