"""Parts of Numba and LLVM for functions that are made of instructions, imported after the code cache is chosen."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

__all__ = ["cgutils", "intrinsic", "ir", "overload", "types"]
