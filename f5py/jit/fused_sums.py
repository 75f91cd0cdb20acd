"""Test for fused multiply-add, on which the last digit of some sums depends."""

from __future__ import annotations

from typing import Any


def has_fused_sums(context: Any) -> bool:
    """Return whether the processor that is compiled for has fused multiply-add; `context` is Numba's."""
    machine, _, features = context.codegen().magic_tuple()
    return machine.startswith(("aarch64", "arm64")) or "+fma" in features.split(",")


def processor_has_fused_sums() -> bool:
    """Return whether this one has, as Numba sees it (``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` count)."""
    from numba.core.registry import cpu_target

    return has_fused_sums(cpu_target.target_context)
