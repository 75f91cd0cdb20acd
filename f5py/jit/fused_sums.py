"""Detection of fused multiply-add, on which last digits depend."""

from __future__ import annotations

from typing import Any


def has_fused_sums(context: Any) -> bool:
    """Return whether the target processor has fused multiply-add; `context` is Numba's."""
    machine, _, features = context.codegen().magic_tuple()
    return machine.startswith(("aarch64", "arm64")) or "+fma" in features.split(",")


def processor_has_fused_sums() -> bool:
    """Return whether this processor has it according to Numba and its ``NUMBA_CPU_*`` settings."""
    from numba.core.registry import cpu_target

    return has_fused_sums(cpu_target.target_context)
