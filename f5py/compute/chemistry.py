"""Chemistry of the signals, from options and from the metadata of signal files."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from f5py.errors import F5pyError, UnsupportedDataError
from f5py.messages.console import input_warning
from f5py.pore_model import PoreModel, builtin, named_model, read_model
from f5py.signal.events import DNA, RNA, EventParameters

_WHO = "chemistry"
#: R10.4.1 is sampled at 4 or at 5 kHz.
_BETWEEN_RATES = 4500.0
# Product codes that tell the pore, in lower case. Those of R10.4.1 have 114 in them, those of RNA004 rna004 or 004ra.
# Kits of version 12, which are for several pores, and unknown ones tell nothing.
_R9_DNA_KIT = re.compile(
    r"(?:lsk(?:108|109|110|308)|rad00[1-4]|rbk(?:00\d|101|110)|pcs1(?:0\d|10|11)|pcb1(?:09|10|11)|dcs10\d|nbd10\d"
    r"|(?:pbk|psk|rpb)004|rab20[14]|16s024|lwp001|cas109|ulk001)(?!\d)"
)
_R9_RNA_KIT = re.compile(r"rna00[12](?!\d)")
_R9_FLOW_CELL = re.compile(r"min106|minsp6|flg001|pro00[12]")
#: R10.4, and its first kit.
_R10_4 = re.compile(r"(?:min|flg|pro)112|q20ea")
#: R10 and R10.3, on which kits of R9 are used as well.
_EARLY_R10_FLOW_CELL = re.compile(r"(?:min|flg|pro)11[01]")
#: Names of basecalling models and of their configurations, which tell where kit and flow cell do not.
_OF_ALIGNMENTS = "basecall_model"
_MODEL_NAMES = (_OF_ALIGNMENTS, "basecall_config_filename")
_RNA_MODEL = re.compile(r"(?:^|[^a-z])rna")
_IF_WRONG = "; if the metadata are wrong, keep it and name the right pore model with --kmer-model"


@dataclass(frozen=True)
class Chemistry:
    """A pore and the molecule that it reads."""

    name: str  # for messages
    pore: str  # "r9", "r10", "rna004"
    rna: bool  # direct RNA: the signal runs from the 3' end of the molecule to its 5' end
    model: str | None  # the built-in nucleotide model
    known_from: str = field(default="", compare=False)  # of the chemistry of a run: what tells that it is this one

    @property
    def event_parameters(self) -> EventParameters:
        return RNA if self.rna else DNA

    def nucleotide_model(self, path: str | None) -> PoreModel:
        """Return the pore model of the file or name `path`, or the built-in one.

        Raises `PoreModelError` for an unusable file, `UnsupportedDataError` without a built-in model.
        """
        if path is not None:
            named = None if os.path.exists(path) else named_model(path, "ACGT")
            return named or read_model(path, "ACGT", lambda: None if self.model is None else builtin(self.model))
        if self.model is None:
            raise UnsupportedDataError(f"there is no built-in pore model for {self.name}; give one with --kmer-model")
        return builtin(self.model)


R9_DNA = Chemistry("R9.4 DNA", "r9", False, "r9.4_450bps.nucleotide.6mer")
R9_RNA = Chemistry("R9.4 RNA (RNA002)", "r9", True, "r9.4_70bps_rna.nucleotide.5mer")
R10_DNA = Chemistry("R10.4.1 DNA", "r10", False, "r10.4.1_400bps.nucleotide.9mer")
RNA004 = Chemistry("RNA004", "rna004", True, "rna004_130bps.nucleotide.9mer")

_CHEMISTRIES = {("r9", False): R9_DNA, ("r9", True): R9_RNA, ("r10", False): R10_DNA, ("rna004", True): RNA004}


def chemistry_of(pore: str | None, rna: bool, run_info: Mapping[str, str], own_model: bool) -> Chemistry:
    """Choose the chemistry by the options and the metadata of the signal files.

    Metadata count where no option is given. Contradictions among options and metadata are errors, unless
    ``--kmer-model`` is given: then the options count, and a warning is printed. If kit and flow cell differ, ``--pore``
    may also decide. Signals without metadata default to R9.4 DNA.

    Parameters
    ----------
    run_info : mapping of str to str
        See `f5py.io.signals.source.SignalSource.run_info`; ``basecall_model`` is from the alignments' header.
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
    molecules, pores = _molecules(run_info), _pores(run_info)
    evidence = ", ".join(
        f"{key} {run_info[key]}"
        for key in ("experiment_type", "sequencing_kit", "flow_cell_product_code", *_MODEL_NAMES)
        if run_info.get(key)
    )
    if molecules == {True} and pores == {"r10"}:
        raise UnsupportedDataError(
            f"the signals say that they are RNA and R10 at the same time ({evidence}), which does not exist; "
            "correct their metadata"
        )
    pores |= _pores_of([run_info.get(_OF_ALIGNMENTS, "").lower()])
    if pore in pores:
        pores = {pore}
    contradiction = None
    if len(molecules) > 1:
        contradiction = (
            f"the signals say that they are DNA and RNA at the same time ({evidence}); correct their metadata, or give "
            "the right model with --kmer-model, and --rna or --pore if they are not R9.4 DNA"
        )
        molecules, pores = set(), set()
    elif len(pores) > 1:
        contradiction = (
            f"the metadata say that the signals are of {' and '.join(sorted(pores))} at the same time ({evidence}); "
            "say with --pore which is right"
        )
        pores = set()
    if contradiction is not None and not own_model:
        raise UnsupportedDataError(contradiction)
    found_rna, found_pore = next(iter(molecules), None), next(iter(pores), None)
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
            raise UnsupportedDataError(f"{problem}{_IF_WRONG}")
        input_warning(_WHO, f"{problem} unless the model given by --kmer-model is made for it")
    given = " and ".join([*(["--pore"] if pore is not None else []), *(["--rna"] if rna else [])])
    is_found = found_pore is not None or found_rna is not None
    if pore is None:
        pore = found_pore or "r9"
    is_rna = rna or pore == "rna004" or bool(found_rna)
    if (pore, is_rna) == ("r10", True):  # --rna beside metadata of an R10 kit, with a model of the user's own
        pore = "rna004"
    chemistry = _CHEMISTRIES[pore, is_rna]
    if contradiction is not None:
        input_warning(_WHO, f"{contradiction}. They are taken as {chemistry.name}, with the model given")
    known_from = " and ".join(filter(None, [given, evidence if is_found else ""]))
    known_from = known_from or "assumed, as neither the options nor the signals tell"
    if chemistry == R10_DNA and _is_5_khz(run_info):
        known_from += ", 5 kHz"
    return replace(chemistry, known_from=known_from)


def _is_5_khz(run_info: Mapping[str, str]) -> bool:
    """Return whether the sampling rate is 5 kHz; the built-in models of R10.4.1 are of 4 kHz."""
    try:
        return float(run_info.get("sample_frequency", "")) > _BETWEEN_RATES
    except ValueError:
        return any("5khz" in name for name in _model_names(run_info))


def _molecules(run_info: Mapping[str, str]) -> set[bool]:
    """Collect the molecules in the metadata: RNA (True) and DNA (False)."""
    found: set[bool] = set()
    kind = run_info.get("experiment_type", "").lower()
    if "dna" in kind:  # genomic_dna, cdna
        found.add(False)
    elif "rna" in kind:
        found.add(True)
    kit = run_info.get("sequencing_kit", "").lower()
    if "rna" in kit or "rna004" in _pores(run_info):
        found.add(True)
    elif _R9_DNA_KIT.search(kit):
        found.add(False)
    for name in () if found else _model_names(run_info):
        if _RNA_MODEL.search(name):
            found.add(True)
        elif "dna" in name:
            found.add(False)
    return found


def _pores(run_info: Mapping[str, str]) -> set[str]:
    """Collect the pores that kit and flow cell imply."""
    kit = run_info.get("sequencing_kit", "").lower()
    flow_cell = run_info.get("flow_cell_product_code", "").lower()
    found = set()
    for name in (kit, flow_cell):
        if "rna004" in name or "004ra" in name:
            found.add("rna004")
        elif "114" in name or _R10_4.search(name):
            found.add("r10")
    is_r9_kit = _R9_DNA_KIT.search(kit) or _R9_RNA_KIT.search(kit)
    on_early_r10 = _EARLY_R10_FLOW_CELL.search(flow_cell) or _R10_4.search(flow_cell)
    if _R9_FLOW_CELL.search(flow_cell) or (is_r9_kit and not on_early_r10):
        found.add("r9")
    return found or _pores_of(_model_names(run_info))


def _pores_of(model_names: list[str]) -> set[str]:
    """Collect the pores that basecalling models imply."""
    found = set()
    for name in model_names:
        if "rna004" in name:
            found.add("rna004")
        elif "r10.4" in name:
            found.add("r10")
        elif "r9.4" in name or "rna002" in name:
            found.add("r9")
    return found


def _model_names(run_info: Mapping[str, str]) -> list[str]:
    return [run_info[key].lower() for key in _MODEL_NAMES if run_info.get(key)]
