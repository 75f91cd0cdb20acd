"""Short files of the shifts of methylated k-mers."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from f5py.errors import PoreModelError
from f5py.pore_model import builtin, read_model
from f5py.pore_model.model import Shifts, with_methylation
from f5py.pore_model.shift_file import shift_text
from f5py.pore_model.text_file import read_start

R10 = "r10.4.1_400bps.nucleotide.9mer"
FITTED = Shifts((0.75, 0.0, 0.0, 0.25, -2.0, -9.5, -13.25, -4.0, 1.5), (0.0, 0.0, 0.0, 0.0, 0.5, -1.0, 2.0, 4.0, 0.0))
TEXT = shift_text(R10, FITTED, ([0.25] * 9, [0.5] * 9), 1.4, "made for a test")


def test_a_written_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cpg.model"
    path.write_text(TEXT)
    model, expected = read_model(path, "ACGMT"), with_methylation(builtin(R10), FITTED, "expected")
    assert (model.name, model.k, model.alphabet, model.kind) == (str(path), 9, "ACGMT", "cpg")
    assert (model.shifts, model.calibration, model.noise) == (FITTED, 1.4, None)
    np.testing.assert_array_equal(model.level_mean, expected.level_mean)
    np.testing.assert_array_equal(model.level_stdv, expected.level_stdv)
    assert read_start(path, lambda: None).shifts == FITTED


def test_forms_of_the_same_file_give_the_same_shifts(tmp_path: Path) -> None:
    path = tmp_path / "cpg.model"
    shorter = ["\t".join(line.split("\t")[:2]) if line[0].isdigit() else line for line in TEXT.splitlines()]
    for data, expected in [
        (gzip.compress(TEXT.encode()), FITTED),
        (TEXT.replace("\n", "\r\n").encode(), FITTED),
        (TEXT.replace("#calibration\t1.4\n", "").encode(), FITTED),
        ("\n".join(shorter).encode(), Shifts.of_places(FITTED.by_place)),
    ]:
        path.write_bytes(data)
        assert read_model(path, "ACGMT").shifts == expected


def _changed(line: int, new: str) -> str:
    lines = TEXT.splitlines(keepends=True)
    lines[line - 1] = new
    return "".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_changed(2, ""), ": '#model' is followed by ''"),
        (_changed(2, "#model\tr9.4_450bps.cpg.6mer\n"), ": '#model' is followed by 'r9.4_450bps.cpg.6mer'"),
        (_changed(2, "#model\tr9.4_450bps.nucleotide.6mer\n"), ": has 9 places, but k-mers of"),
        (_changed(3, "#kind\tgpc\n"), ": '#kind' is followed by 'gpc', not by cpg"),
        (_changed(4, "#calibration\tnan\n"), "line 4: '#calibration' is followed by 'nan'"),
        (_changed(4, "#calibration\t0\n"), "line 4: '#calibration' is followed by '0'"),
        (_changed(9, ""), "line 9: is not place 2"),
        (_changed(15, ""), ": has 8 places"),
        (_changed(9, "2\tx\n"), "line 9: is not place 2"),
        (_changed(9, "2\tinf\n"), "line 9: is not place 2"),
        (_changed(9, "2\t0.1\t0.1\t0.1\n"), "line 9: is not place 2"),
        (_changed(9, "2\t50.5\n"), "line 9: shifts by more than 50 pA"),
        (_changed(7, "0\t1\t1\t1\t1\n"), ": place 0 has a shift for the base before it"),
        (TEXT + "9\t1\n", ": has 10 places"),
    ],
)
def test_a_fault_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cpg.model"
    path.write_text(text)
    with pytest.raises(PoreModelError) as caught:
        read_model(path, "ACGMT")
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_it_is_no_nucleotide_model(tmp_path: Path) -> None:
    path = tmp_path / "cpg.model"
    path.write_text(TEXT)
    with pytest.raises(PoreModelError, match="--meth-model"):
        read_model(path, "ACGT")
