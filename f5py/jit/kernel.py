"""The one place where Numba is configured.

What is private to Numba may change in its next version: if anything of it fails, when a function is decorated or
compiled, all are compiled as ``numba.njit`` does by itself, with one warning.

Modules with jitted loops (``_*_numba.py``) take their decorator from here. Importing this module imports
Numba, so it must only be imported by those modules, and those only from inside functions.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import resource
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from f5py.errors import F5pyError
from f5py.jit.cache_folder import with_checksum, without_checksum
from f5py.jit.code_cache import code_folder
from f5py.jit.compile_lock import let_one_compile
from f5py.jit.lazy_kernel import LazyKernel
from f5py.jit.shortcuts import import_numba
from f5py.messages import console

#: Allowed fast-math: contraction into fused multiply-add and reciprocals. Never ``nnan`` or ``ninf``:
#: scores use minus infinity for "impossible".
FASTMATH = {"contract", "arcp", "nsz"}
_OPTIONS = {"nogil": True, "error_model": "numpy"}

numba = import_numba()
if numba.config.DISABLE_JIT:
    raise F5pyError("NUMBA_DISABLE_JIT is set, but f5py computes in compiled code only; unset it")
#: What LLVM may need for the largest of our functions.
_COMPILER_BYTES = 300 << 20


def kernel(function):
    """Compile `function` without the GIL, cached on disk, with C's rules for division by zero."""
    return LazyKernel(function, partial(_compiled, fastmath=FASTMATH))


def exact_kernel(function):
    """Compile `function` like `kernel` but with every IEEE operation as written.

    For code whose results must equal f5c's to the last bit, such as event detection.
    """
    return LazyKernel(function, partial(_compiled, fastmath=False))


def shared_kernel(function):
    """Compile `function` like `exact_kernel`, for other kernels once for all constants that they call it with.

    Numba compiles a function anew for every combination of constants, which costs more of a first run than it gains
    where loops are long. Constants that types depend on are none of its arguments.
    """
    return LazyKernel(function, _shared)


def _shared(function):
    compiled = _compiled(function, False)
    compiled.is_shared = True
    return compiled


def _compiled(function, fastmath):
    while _private_parts_fit:
        try:
            return _tuned(function, fastmath)
        except RuntimeError as problem:  # neither the package's folder nor the user's cache can be written
            if _can_cache:
                _do_without_cache(str(problem))
            else:
                _use_plain_numba(problem)
        except Exception as problem:
            _use_plain_numba(problem)
    return numba.njit(fastmath=fastmath, **_OPTIONS)(function)


def _tuned(function, fastmath):
    """Apply all that is private to Numba, for a first run of eight seconds instead of twenty."""
    from f5py.jit.inner import leave_inner_entries_out
    from f5py.jit.kept_code import load_without_imports, look_at_folders_once

    with suppress(AttributeError, ImportError):  # then loading takes longer
        load_without_imports()
        look_at_folders_once()
    # without the wrapper for C, of which there is no use, compilation takes a tenth less time
    compiled = numba.njit(cache=_can_cache, fastmath=fastmath, no_cfunc_wrapper=True, **_OPTIONS)(function)
    leave_inner_entries_out(compiled)
    if _can_cache:
        file = compiled._cache._cache_file
        for name in _OF_CACHE_FILES:
            getattr(file, name)
        _stamp_cache(file, function.__code__.co_filename)
        _load_at_once(compiled._cache)
        let_one_compile(compiled, _is_kept_for)
    _compile_plainly_after_failures(compiled)
    return compiled


def _compile_plainly_after_failures(kernel: Any) -> None:
    """Let a kernel be compiled as Numba does by itself where that works and our way does not."""
    compile_tuned = kernel.compile

    def compile_(signature: Any) -> Any:
        if _private_parts_fit:
            try:
                return compile_tuned(signature)
            except (F5pyError, MemoryError):
                raise
            except Exception as problem:  # of the kernel itself if Numba alone raises too
                result = _compile_plainly(kernel, signature)
                _use_plain_numba(problem)
                return result
        return _compile_plainly(kernel, signature)

    kernel.compile = compile_


def _compile_plainly(kernel: Any, signature: Any) -> Any:
    for types, result in list(kernel.overloads.items()):
        if not callable(result.entry_point):  # compiled for other kernels only, see `f5py.jit.inner`
            del kernel.overloads[types]
    with suppress(ImportError):
        from numba.core.caching import NullCache

        kernel._cache = NullCache()
    return type(kernel).compile(kernel, signature)


def is_kept(compiled, argument: str = "") -> bool:
    """Return whether the disk cache has code of a compiled function, or there is no cache to be filled.

    What is found is not sure to fit the arguments of the next call or the processor; it will be compiled then.

    Parameters
    ----------
    argument : str
        What stands in the types of the arguments, for functions that are compiled for several.
    """
    if not _can_cache:
        return True
    if any(not argument or argument in str(types) for types in compiled.signatures):
        return True
    try:
        kept = compiled._cache._cache_file._load_index()
        return any(not argument or argument in str(types) for types, *_ in kept)
    except (AttributeError, OSError):
        return True
    except Exception:  # damaged, see `_guard`
        return False


def _is_kept_for(compiled: Any, signature: Any) -> bool:
    """Return whether the disk cache has code of a compiled function for these arguments and this processor."""
    from numba.core.sigutils import normalize_signature

    cache = compiled._cache
    try:
        key = cache._index_key(normalize_signature(signature)[0], compiled.targetctx.codegen())
        return key in cache._cache_file._load_index()
    except Exception:  # damaged, see `_guard`, or of another version of Numba
        return False


#: What we use or replace of Numba's files of kept code.
_OF_CACHE_FILES = (
    "load", "save", "_load_data", "_save_data", "_load_index", "_data_path", "_dump", "_open_for_write", "_index_path",
    "_cache_path", "_source_stamp",
)  # fmt: skip


def _stamp_cache(file: Any, path: str) -> None:
    """Make kept code out of date when any file that it was compiled from changes.

    Numba compares only the file of the function itself, but the code has the functions that it calls in it: after an
    upgrade of the package in place, old code would be used. The same goes for code with and without checks of indices
    (``NUMBA_BOUNDSCHECK``), which Numba does not tell apart.
    """
    file._source_stamp = (file._source_stamp, sources_stamp(Path(path)), bool(numba.config.BOUNDSCHECK))
    _guard(file)


def _load_at_once(cache: Any) -> None:
    """Let code that is kept be loaded without what only compilation needs.

    Numba would first install all that it knows how to compile, which takes longer than everything else before the first
    batch; where it compiles, it does that by itself.
    """
    from numba.core.runtime import rtsys

    from f5py.jit.kept_code import ask_for_the_processor_once, keep_runtime, load_without_intermediate_code

    load = cache._load_overload

    def load_overload(signature: Any, target: Any) -> Any:
        with suppress(AttributeError, ImportError):
            load_without_intermediate_code(target.codegen())
            ask_for_the_processor_once(target.codegen())
            keep_runtime()
        rtsys.initialize(target)  # what compiled code calls to have memory
        return load(signature, target)

    cache.load_overload = load_overload


def _guard(file: Any) -> None:
    """Make a damaged cache file one that is not there, and one that cannot be written no concern of the run."""
    load, save = file.load, file.save

    def load_data(name: str) -> Any:
        code = without_checksum(Path(file._data_path(name)).read_bytes())
        if code is None:
            raise ValueError("wrong checksum")
        return pickle.loads(code)

    def save_data(name: str, data: Any) -> None:
        with file._open_for_write(file._data_path(name)) as out:
            out.write(with_checksum(file._dump(data)))

    file._load_data, file._save_data = load_data, save_data

    def load_if_sound(key: Any) -> Any:
        found = load_or_drop(key)
        if found is None:
            _check_memory()  # it will be compiled
        return found

    def load_or_drop(key: Any) -> Any:
        try:
            return load(key)
        except Exception as problem:  # unpickling damaged bytes raises whatever it happens to meet
            for path in (file._index_path, *Path(file._cache_path).glob(f"{Path(file._index_path).stem}*.nbc")):
                with suppress(OSError):
                    os.unlink(path)
            console.warning("accelerate", f"{file._index_path}: is damaged ({problem!r}); compiling again")
            return None

    def save_if_possible(key: Any, data: Any) -> None:
        try:
            save(key, data)
        except OSError as problem:
            _do_without_cache(f"{file._cache_path}: {problem.strerror or problem}")
        except Exception:  # the old index is damaged
            with suppress(OSError):
                os.unlink(file._index_path)
            with suppress(Exception):
                save(key, data)

    file.load, file.save = load_if_sound, save_if_possible


def _check_memory() -> None:
    """Raise before a compilation under a memory limit that leaves too little: LLVM would end the process then.

    Raises `F5pyError` if the message names the limit.
    """
    try:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return
    left = limit - pages * resource.getpagesize()
    if left < _COMPILER_BYTES:
        raise F5pyError(
            f"the limit on memory (ulimit -v) leaves {max(left, 0) >> 20} MB, too little to compile for this "
            "processor; raise it, or run once without it: compiled code is kept"
        )


@cache
def sources_stamp(path: Path) -> str:
    """Checksum of a source file and of all files of the package that it imports, directly or not."""
    content = hashlib.sha256()
    for source in sorted(_with_imports(path)):
        content.update(_about(source)[0])
    return content.hexdigest()


_PACKAGE = Path(__file__).resolve().parents[1]


def _with_imports(path: Path) -> set[Path]:
    found, new = set(), {path}
    while new:
        found |= new
        names = {name for source in new for name in _about(source)[1]}
        new = {source for name in names if (source := _source_of(name)) is not None} - found
    return found


@cache
def _source_of(name: str) -> Path | None:
    """File of a module, if it is one."""
    path = _PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")
    return path if path.is_file() else None


_FROM_IMPORT = re.compile(r"^[ \t]*from (f5py[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import (f5py[\w.]*)", re.MULTILINE)


@cache
def _about(source: Path) -> tuple[bytes, set[str]]:
    """Checksum of a source file, and names that may be modules of this package.

    These are those that are imported, and those they are imported from: by their looks, because parsing all sources
    would take longer than loading the compiled code. Most files belong to many kernels, and are read once.
    """
    content = source.read_bytes()
    text = content.decode("utf-8")
    names = set(_IMPORT.findall(text))
    for module, imported in _FROM_IMPORT.findall(text):
        names |= {module, *(f"{module}.{name.split()[0]}" for name in imported.strip("()").split(",") if name.strip())}
    return hashlib.sha256(content).digest(), names


_can_cache = code_folder() is not None
#: Whether Numba is inside as the versions are that this module was written for, as far as is known.
_private_parts_fit = True


def _use_plain_numba(problem: Exception) -> None:
    """Do without Numba's private parts from now on."""
    global _can_cache, _private_parts_fit
    if _private_parts_fit:
        console.warning(
            "accelerate",
            f"Numba {numba.__version__} differs inside from the versions that f5py is tested with "
            f"({type(problem).__name__}: {problem}), so every run compiles again, which takes up to a minute; to avoid "
            'that, install a version that f5py is tested with: pip install "numba<0.70"',
        )
    _can_cache = _private_parts_fit = False


def _do_without_cache(problem: str) -> None:
    global _can_cache
    if _can_cache:
        console.warning(
            "accelerate",
            f"compiled code cannot be kept ({problem}), so every run compiles again; "
            "set NUMBA_CACHE_DIR to a folder that can be written",
        )
    _can_cache = False
