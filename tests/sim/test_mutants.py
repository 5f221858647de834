"""The list of mutants keeps up with the code; ``make mutants`` runs them."""

import ast

import pytest

from tests.engines.mutants.kill import MUTANTS, OTHERS, PACKAGE, ROOT
from tests.engines.mutants.mutant import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_still_finds_its_place(mutant: Mutant) -> None:
    for file, old, new in mutant.edits:
        text = ((ROOT if file.split("/")[0] in OTHERS else PACKAGE) / file).read_text()
        assert text.count(old) == 1
        ast.parse(text.replace(old, new))
    tested = [] if mutant.by in {"sim", "adversary"} else mutant.by.split()
    assert all((ROOT / one).exists() for one in tested)
