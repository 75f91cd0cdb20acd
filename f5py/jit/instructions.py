"""Parts of Numba and LLVM for intrinsics, imported after the code cache is set up."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

__all__ = ["cgutils", "intrinsic", "ir", "overload", "types"]
