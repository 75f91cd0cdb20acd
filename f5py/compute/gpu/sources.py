"""Sources and compiled modules of the CUDA kernels."""

import hashlib
import importlib.util
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from f5py.compute.gpu.device import NO_CUPY, GpuUnavailableError, NoGpuError, remedy
from f5py.jit.cache_folder import cache_folder, load_cached, save_cached

#: The files of the kernels and what is in each, in the order in which they run.
KERNELS = {
    "events": ("events_find", "events_place"),
    "scaling": ("scaling_moments", "scaling_fit"),
    "abea_pre": ("abea_pre",),
    "abea_core": ("abea_core",),
    "abea_post": ("abea_post",),
    "hmm": ("hmm_forward", "hmm_correlated"),
    "site_hmm": ("sites_independent", "sites_correlated"),
    "viterbi": ("viterbi_rows",),
    "map_seeds": ("seeds_find", "seeds_place", "seeds_sort"),
    "map_chain": ("chain_forward_warp", "chain_forward_block"),
    "map_look_back": ("chain_back",),
    "mems": ("mems_pack", "mems_find", "mems_mark", "mems_scan", "mems_compact", "mems_rows", "mems_locate"),
    "map_align": ("align_gather", "align_pairs"),
    "map_bands": ("align_bands",),
    "gact": ("gact_extend",),
}
#: Their products and sums are rounded one by one but where they say fmaf, as on the CPU.
_UNFUSED = ("events", "scaling", "hmm", "site_hmm", "viterbi")
#: Numbers below 2 ** -126 are zero, as on the CPU there, and nowhere else.
_FLUSHED = ("hmm", "site_hmm")
#: What only some kinds of results take, see `f5py.compute.cpu.SignalStages`; and what has nothing to do with signals.
_OF_RESULTS = {"hmm": ("calls", "sites"), "site_hmm": ("sites",), "viterbi": ("rows",)}
_OF_MAPPING = {
    "map_seeds": "seeds", "map_chain": "chains", "map_look_back": "chains", "mems": "matches",
    "map_align": "alignments", "map_bands": "alignments", "gact": "tiles",
}  # fmt: skip
_INCLUDE = re.compile(r'#include "([\w.]+)"\n')


def machine_code(source: str, options: tuple[str, ...], capability: str) -> bytes:
    """Compile kernels for a GPU, or load the cached code, for `cupy.cuda.function.Module.load`.

    Raises `GpuUnavailableError` with the compiler's first message.
    """
    from cupy.cuda import nvrtc

    known = [number for number in nvrtc.getSupportedArchs() if number <= int(capability)]
    is_known = int(capability) in known
    # A GPU that is newer than the compiler gets code that its driver translates.
    target = f"-arch={'sm' if is_known else 'compute'}_{capability if is_known else max(known, default=75)}"
    key = "\0".join([source, *options, target, str(nvrtc.getVersion())])
    path = os.path.join(cache_folder(), "f5py", "kernels", hashlib.sha256(key.encode()).hexdigest()[:40])
    if (made := load_cached(path)) is not None:
        return made
    code = _compile(source, (*options, target), is_known)
    with suppress(OSError):  # then the next run compiles again
        save_cached(path, code)
    return code


def _compile(source: str, options: tuple[str, ...], is_final: bool) -> bytes:
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source, "f5py.cu", (), ())
    try:
        nvrtc.compileProgram(program, options)
        return nvrtc.getCUBIN(program) if is_final else nvrtc.getPTX(program)
    except nvrtc.NVRTCError as problem:
        complaints = nvrtc.getProgramLog(program).strip() or str(problem)
        raise GpuUnavailableError(f"the kernels do not compile: {complaints.splitlines()[0]}") from problem
    finally:
        nvrtc.destroyProgram(program)


def source_folder() -> Path:
    """Find the ``.cu`` files: in the installed package, or next to it in a checkout."""
    packaged = Path(__file__).parents[2] / "kernels"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "kernels"


def source(name: str) -> str:
    """Return a file of kernels with all includes expanded, as compilers cache by the text."""
    seen: set[str] = set()

    def text_of(file: str) -> str:
        if file in seen:
            return ""
        seen.add(file)
        text = (source_folder() / file).read_text().replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda found: text_of(found[1]), text)

    return text_of(f"{name}.cu")


def compiler_options(name: str) -> tuple[str, ...]:
    """Return the NVRTC options of a file, besides its macros."""
    return ("-std=c++14", *(["--fmad=false"] if name in _UNFUSED else []), *(["-ftz=true"] if name in _FLUSHED else []))


def functions(device: int, macros: tuple[str, ...], results: str) -> dict[str, Any]:
    """Load the kernels into the current device as ``cupy.cuda.function.Function`` objects.

    Only those for `results`: ``calls``, ``sites``, ``rows`` or none; or a mapper's ``seeds``, ``chains``, ``joins``,
    ``alignments``, ``tiles``. `macros` are definitions such as ``-DW=100``. Raises `GpuUnavailableError`, see
    `machine_code`.
    """
    with _loading:  # devices are started at the same time, and need the same code
        return _functions(device, macros, results)


def compile_for(capability: str) -> None:
    """Compile all kernels for a compute capability, such as ``"87"``, and cache the code. No GPU is needed.

    Raises `GpuUnavailableError` if CuPy or the compiler is missing, or the kernels do not compile.
    """
    from f5py.abea.align import macros

    if importlib.util.find_spec("cupy") is None:
        raise NoGpuError(NO_CUPY)

    def compile_one(file: str) -> None:
        defined = () if file in _OF_MAPPING else macros()
        machine_code(source(file), (*compiler_options(file), *defined), capability)

    try:
        # Threads that import it at the same time can meet a part of it before the whole is there.
        import cupy  # noqa: F401

        with ThreadPoolExecutor(len(KERNELS)) as threads:
            list(threads.map(compile_one, KERNELS))
    except GpuUnavailableError:
        raise
    except Exception as problem:  # cupy and what it loads raise all kinds of them
        raise GpuUnavailableError(remedy(problem)) from problem


_loading = threading.Lock()


@cache
def _functions(device: int, macros: tuple[str, ...], results: str) -> dict[str, Any]:
    import cupy

    capability = cupy.cuda.Device(device).compute_capability
    files = [file for file, kind in _OF_MAPPING.items() if kind == results]
    if not files:
        files = [file for file in KERNELS if file not in _OF_MAPPING and results in _OF_RESULTS.get(file, (results,))]

    def code_of(file: str) -> bytes:
        return machine_code(source(file), (*compiler_options(file), *macros), capability)

    with ThreadPoolExecutor(len(files)) as threads:
        codes = list(threads.map(code_of, files))
    found: dict[str, Any] = {}
    for file, code in zip(files, codes, strict=True):
        module = cupy.cuda.function.Module()
        module.load(code)
        found |= {name: module.get_function(name) for name in KERNELS[file]}
    return found
