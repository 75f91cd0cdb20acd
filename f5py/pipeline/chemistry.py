"""Which chemistry the signals are of: what the user says, and what the signal files say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from f5py import console
from f5py.errors import F5pyError, UnsupportedDataError
from f5py.pore_model import PoreModel, builtin, read_model
from f5py.signal.events import DNA, RNA, EventParameters

_WHO = "chemistry"
#: Flow cell product codes of R9.4.1 pores; those of R10.4.1 have 114 in their names, those of RNA004 004RA.
_R9_FLOW_CELLS = ("106", "107", "111", "flg001", "pro001", "pro002")


@dataclass(frozen=True)
class Chemistry:
    """A pore and the kind of molecule that goes through it.

    Attributes
    ----------
    name : str
        For messages.
    pore : {"r9", "r10", "rna004"}
    rna : bool
        Direct RNA: the signal runs from the 3' end of the molecule to its 5' end.
    model : str or None
        The built-in nucleotide model.
    """

    name: str
    pore: str
    rna: bool
    model: str | None

    @property
    def event_parameters(self) -> EventParameters:
        """Parameters of the event detection."""
        return RNA if self.rna else DNA

    def nucleotide_model(self, path: str | None) -> PoreModel:
        """Return the pore model that events are aligned with: the file at `path`, or the built-in one.

        Raises
        ------
        PoreModelError
            The file is unusable.
        UnsupportedDataError
            There is no built-in model.
        """
        if path is not None:
            return read_model(path, "ACGT")
        if self.model is None:
            raise UnsupportedDataError(f"there is no built-in pore model for {self.name}; give one with --kmer-model")
        return builtin(self.model)


R9_DNA = Chemistry("R9.4 DNA", "r9", False, "r9.4_450bps.nucleotide.6mer")
R9_RNA = Chemistry("R9.4 RNA (RNA002)", "r9", True, "r9.4_70bps_rna.nucleotide.5mer")
R10_DNA = Chemistry("R10.4.1 DNA", "r10", False, "r10.4.1_400bps.nucleotide.9mer")
RNA004 = Chemistry("RNA004", "rna004", True, None)

_CHEMISTRIES = {("r9", False): R9_DNA, ("r9", True): R9_RNA, ("r10", False): R10_DNA, ("rna004", True): RNA004}


def chemistry_of(pore: str | None, rna: bool, run_info: Mapping[str, str], own_model: bool) -> Chemistry:
    """Decide by the options and the metadata of the signal files.

    The files' metadata count where the options say nothing. Where both speak, they must agree, unless a pore model of
    the user's own is given: then the options count, and a warning is printed.

    Parameters
    ----------
    pore : {"r9", "r10", "rna004"} or None
        ``--pore``.
    rna : bool
        ``--rna``.
    run_info : mapping of str to str
        See `f5py.io.signals.source.SignalSource.run_info`.
    own_model : bool
        ``--kmer-model`` is given.

    Raises
    ------
    UnsupportedDataError
        The metadata contradict each other or the options.
    F5pyError
        The options contradict each other.
    """
    if pore == "r10" and rna:
        raise F5pyError("--pore r10 and --rna exclude each other: there is no RNA chemistry of R10; is it rna004?")
    found_rna, found_pore = _molecule(run_info), _pore(run_info)
    evidence = ", ".join(
        f"{key} {run_info[key]}"
        for key in ("experiment_type", "sequencing_kit", "flow_cell_product_code")
        if run_info.get(key)
    )
    if found_rna and found_pore == "r10":
        raise UnsupportedDataError(
            f"the signals say that they are RNA and R10 at the same time ({evidence}), which does not exist; "
            "correct their metadata"
        )
    problems = []
    if rna and found_rna is False:
        problems.append(f"--rna, but the signals are DNA ({evidence}); leave --rna out")
    elif rna and found_pore == "r10":
        problems.append(f"--rna, but the signals are of R10, which is for DNA ({evidence}); leave --rna out")
    if pore == "rna004" and found_rna is False:
        problems.append(f"--pore rna004, but the signals are DNA ({evidence}); leave --pore out")
    elif pore == "r10" and found_rna:
        problems.append(f"--pore r10, but the signals are RNA ({evidence}); leave --pore out")
    elif pore is not None and found_pore is not None and pore != found_pore:
        problems.append(f"--pore {pore}, but the signals are of {found_pore} ({evidence}); leave --pore out")
    for problem in problems:
        if not own_model:
            raise UnsupportedDataError(problem)
        console.warning(_WHO, f"{problem} unless the model given by --kmer-model is made for it")
    if pore is None:
        pore = found_pore or "r9"
    is_rna = rna or pore == "rna004" or bool(found_rna)
    if (pore, is_rna) == ("r10", True):  # --rna beside metadata of an R10 kit, with a model of the user's own
        pore = "rna004"
    return _CHEMISTRIES[pore, is_rna]


def _molecule(run_info: Mapping[str, str]) -> bool | None:
    """Whether the metadata say RNA (True) or DNA (False), or neither."""
    kind = run_info.get("experiment_type", "").lower()
    kit = run_info.get("sequencing_kit", "").lower()
    if "dna" in kind:  # genomic_dna, cdna
        return False
    if "rna" in kind or "rna" in kit or _pore(run_info) == "rna004":
        return True
    return None


def _pore(run_info: Mapping[str, str]) -> str | None:
    """The pore by the kit's or the flow cell's name."""
    kit = run_info.get("sequencing_kit", "").lower()
    flow_cell = run_info.get("flow_cell_product_code", "").lower()
    for name in (kit, flow_cell):
        if "rna004" in name or "004ra" in name:
            return "rna004"
        if "114" in name:
            return "r10"
    if kit or any(code in flow_cell for code in _R9_FLOW_CELLS):
        return "r9"
    return None
