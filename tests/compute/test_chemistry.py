"""Choice of a run's chemistry: options, metadata of the signal files, and their contradictions."""

from __future__ import annotations

import pytest

from f5py.compute.chemistry import R9_DNA, R9_RNA, R10_DNA, RNA004, chemistry_of
from f5py.errors import F5pyError, UnsupportedDataError
from f5py.signal.events import DNA, RNA

RNA002 = {"experiment_type": "rna", "sequencing_kit": "sqk-rna002", "flow_cell_product_code": "FLO-MIN106"}
LSK109 = {"experiment_type": "genomic_dna", "sequencing_kit": "sqk-lsk109"}
LSK114 = {"experiment_type": "genomic_dna", "sequencing_kit": "SQK-LSK114"}
RNA004_KIT = {"experiment_type": "rna", "sequencing_kit": "SQK-RNA004"}


@pytest.mark.parametrize(
    ("pore", "rna", "run_info", "expected"),
    [
        (None, False, {}, R9_DNA),
        ("r9", False, {}, R9_DNA),
        ("r9", True, {}, R9_RNA),
        (None, True, {}, R9_RNA),
        ("r10", False, {}, R10_DNA),
        ("rna004", False, {}, RNA004),
        ("rna004", True, {}, RNA004),
        (None, False, LSK109, R9_DNA),
        (None, False, LSK114, R10_DNA),
        ("r10", False, LSK114, R10_DNA),
        (None, False, RNA002, R9_RNA),
        (None, True, RNA002, R9_RNA),
        (None, False, RNA004_KIT, RNA004),
        (None, True, RNA004_KIT, RNA004),
        (None, False, {"sequencing_kit": "sqk-rna004"}, RNA004),
        (None, False, {"flow_cell_product_code": "FLO-PRO114M"}, R10_DNA),
        (None, False, {"flow_cell_product_code": "FLO-MIN106"}, R9_DNA),
        (None, False, {"flow_cell_product_code": "FLO-PRO004RA"}, RNA004),
        (None, False, {"experiment_type": "", "sequencing_kit": ""}, R9_DNA),
        (None, True, {"experiment_type": "internal"}, R9_RNA),
        (None, False, {"sequencing_kit": "unknown"}, R9_DNA),
        (None, True, {"sequencing_kit": "unknown"}, R9_RNA),
        ("r10", False, {"sequencing_kit": "unknown"}, R10_DNA),
        ("r10", False, {"sequencing_kit": "sqk-lsk112"}, R10_DNA),
        ("r10", False, {"flow_cell_product_code": "FLO-MIN111"}, R10_DNA),
        ("r10", False, {"flow_cell_product_code": "FLO-MIN107"}, R10_DNA),
        ("r10", False, LSK109 | {"flow_cell_product_code": "FLO-MIN111"}, R10_DNA),
        (None, False, LSK109 | {"flow_cell_product_code": "FLO-MIN107"}, R9_DNA),
        (None, False, {"sequencing_kit": "sqk-lsk112", "flow_cell_product_code": "FLO-MIN106D"}, R9_DNA),
        (None, False, {"sequencing_kit": "sqk-nbd114-24"}, R10_DNA),
        (None, False, {"sequencing_kit": "sqk-rna001"}, R9_RNA),
        (None, False, {"experiment_kit": "genomic_dna", "flow_cell_id": "FAB43577"}, R9_DNA),
        # R10.4, also with kits of R9
        (None, False, {"flow_cell_product_code": "FLO-PRO112"}, R10_DNA),
        (None, False, {"sequencing_kit": "SQK-Q20EA"}, R10_DNA),
        (None, False, {"sequencing_kit": "sqk-lsk112", "flow_cell_product_code": "FLO-MIN112"}, R10_DNA),
        (None, False, LSK109 | {"flow_cell_product_code": "FLO-PRO112"}, R10_DNA),
        # 5 kHz
        (None, False, LSK114 | {"sample_frequency": "5000", "flow_cell_product_code": "FLO-PRO114M"}, R10_DNA),
        # names of models, where nothing else tells
        (None, False, {"basecall_model": "rna004_130bps_hac@v5.2.0"}, RNA004),
        (None, False, {"basecall_model": "rna_r9.4.1_70bps_hac"}, R9_RNA),
        (None, False, {"basecall_model": "rna002_70bps_hac@v3"}, R9_RNA),
        (None, False, {"basecall_config_filename": "rna_r9.4.1_70bps_fast.cfg"}, R9_RNA),
        (None, False, {"basecall_config_filename": "dna_r9.4.1_450bps_hac.cfg"}, R9_DNA),
        (None, False, {"basecall_model": "dna_r10.4.1_e8.2_400bps_5khz_sup"}, R10_DNA),
        (None, False, LSK109 | {"basecall_config_filename": "dna_r10.4.1_e8.2_400bps_hac.cfg"}, R9_DNA),
        # kit and flow cell differ, and the option says which is right
        ("r9", False, LSK109 | {"flow_cell_product_code": "FLO-PRO114M"}, R9_DNA),
        ("r10", False, LSK109 | {"flow_cell_product_code": "FLO-PRO114M"}, R10_DNA),
        ("r9", False, RNA002 | {"flow_cell_product_code": "FLO-PRO004RA"}, R9_RNA),
        ("rna004", False, RNA002 | {"basecall_model": "rna004_130bps_hac@v5.2.0"}, RNA004),
    ],
)
def test_options_and_metadata_that_agree(pore, rna, run_info, expected, capfd):
    assert chemistry_of(pore, rna, run_info, own_model=False) == expected
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("pore", "rna", "run_info", "chosen", "says"),
    [
        ("r9", False, LSK114, R9_DNA, ["--pore r9", "r10", "SQK-LSK114"]),
        ("r10", False, LSK109, R10_DNA, ["--pore r10", "r9", "sqk-lsk109"]),
        ("r9", False, RNA004_KIT, R9_RNA, ["--pore r9", "rna004"]),
        (None, True, LSK109, R9_RNA, ["--rna", "DNA", "genomic_dna"]),
        ("rna004", False, LSK109, RNA004, ["--pore rna004", "DNA"]),
        ("r10", False, RNA002, RNA004, ["--pore r10", "RNA"]),
        (None, True, {"sequencing_kit": "sqk-lsk114"}, RNA004, ["--rna", "R10"]),
        (None, True, {"sequencing_kit": "sqk-lsk109"}, R9_RNA, ["--rna", "DNA", "sqk-lsk109"]),
        ("r10", False, {"flow_cell_product_code": "FLO-MIN106"}, R10_DNA, ["--pore r10", "r9", "FLO-MIN106"]),
    ],
)
def test_contradictions_are_errors_unless_the_model_is_the_users_own(pore, rna, run_info, chosen, says, capfd):
    with pytest.raises(UnsupportedDataError) as error:
        chemistry_of(pore, rna, run_info, own_model=False)
    assert all(word in str(error.value) for word in [*says, "leave", "keep it and name", "--kmer-model"])
    assert chemistry_of(pore, rna, run_info, own_model=True) == chosen
    warning = capfd.readouterr().err
    assert "::WARNING]" in warning
    assert all(word in warning for word in says)


@pytest.mark.parametrize(
    "kit", ["sqk-lsk108", "SQK-LSK109-XL", "sqk-lsk110", "sqk-lsk308", "sqk-rad004", "sqk-rbk004", "sqk-rbk110-96",
            "sqk-rna001", "SQK-RNA002", "sqk-pcs109", "sqk-dcs109", "sqk-nbd104"],
)  # fmt: skip
def test_kits_of_r9(kit):
    with pytest.raises(UnsupportedDataError, match=f"--pore r10, but the signals are .*{kit}"):
        chemistry_of("r10", False, {"sequencing_kit": kit}, own_model=False)


GENOMIC = {"experiment_type": "genomic_dna"}
BOTH = "DNA and RNA at the same time"


@pytest.mark.parametrize(
    ("run_info", "says"),
    [
        (GENOMIC | {"sequencing_kit": "sqk-rna004"}, [BOTH, "genomic_dna", "sqk-rna004"]),
        (GENOMIC | {"sequencing_kit": "sqk-rna002"}, [BOTH, "genomic_dna", "sqk-rna002"]),
        (GENOMIC | {"flow_cell_product_code": "FLO-MIN004RA"}, [BOTH, "genomic_dna", "FLO-MIN004RA"]),
        (LSK109 | {"experiment_type": "rna"}, [BOTH, "experiment_type rna", "sqk-lsk109"]),
        (LSK109 | {"flow_cell_product_code": "FLO-PRO114M"}, ["r10 and r9", "sqk-lsk109", "FLO-PRO114M", "--pore"]),
        (LSK114 | {"flow_cell_product_code": "FLO-MIN106"}, ["r10 and r9", "SQK-LSK114", "FLO-MIN106", "--pore"]),
        (LSK109 | {"basecall_model": "dna_r10.4.1_e8.2_400bps_hac"}, ["r10 and r9", "sqk-lsk109", "e8.2", "--pore"]),
    ],
)
def test_metadata_that_contradict_themselves(run_info, says, capfd):
    """They are errors with advice; with a model of the user's own the options count, and nothing else."""
    for rna in (False, True) if BOTH in says else (False,):
        with pytest.raises(UnsupportedDataError) as error:
            chemistry_of(None, rna, run_info, own_model=False)
        assert all(word in str(error.value) for word in says)
    assert capfd.readouterr().err == ""
    cases = [(None, False, R9_DNA), ("r9", False, R9_DNA), ("r10", False, R10_DNA)]
    if BOTH in says:
        cases += [(None, True, R9_RNA), ("rna004", False, RNA004), ("rna004", True, RNA004)]
    for pore, rna, chosen in cases:
        assert chemistry_of(pore, rna, run_info, own_model=True) == chosen
        warning = capfd.readouterr().err
        if BOTH in says or pore is None:
            assert "::WARNING]" in warning
            assert f"taken as {chosen.name}" in warning
            assert all(word in warning for word in says)
        else:
            assert warning == ""


@pytest.mark.parametrize("own_model", [False, True])
def test_rna_of_r10_does_not_exist(own_model):
    with pytest.raises(F5pyError, match="--pore r10 and --rna exclude each other"):
        chemistry_of("r10", True, {}, own_model)
    with pytest.raises(UnsupportedDataError, match="RNA and R10 at the same time"):
        chemistry_of(None, False, {"experiment_type": "rna", "sequencing_kit": "sqk-lsk114"}, own_model)


def test_models_and_event_parameters():
    assert [chemistry.nucleotide_model(None).k for chemistry in (R9_DNA, R9_RNA, R10_DNA, RNA004)] == [6, 5, 9, 9]
    assert [chemistry.event_parameters for chemistry in (R9_DNA, R9_RNA, R10_DNA, RNA004)] == [DNA, RNA, DNA, RNA]
    assert RNA004.nucleotide_model("rna004-5mer").name == "rna004_130bps.nucleotide.5mer"
    assert RNA004.nucleotide_model("r9.4_70bps_rna.nucleotide.5mer") is R9_RNA.nucleotide_model(None)


def test_a_file_comes_before_a_built_in_model_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rna004").write_text("A 1 1\nC 2 1\nG 3 1\nU 4 1\n")
    assert RNA004.nucleotide_model("rna004").level_mean.tolist() == [1, 2, 3, 4]
