"""The reactions: what is read of their SMILES, and that their mapping can be one of atoms."""

import re
from collections import Counter

import numpy as np
import pytest

from attnbook import datasets
from attnbook.datasets.reactions import GROUPS, element

PUBLISHED = (  # the expression with which RXNMapper's authors cut SMILES into tokens
    r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|"
    r"\%[0-9]{2}|[0-9])"
)
BOTH = datasets.reactions(), datasets.reactions(rewritten=True)


def names(reaction: datasets.Reaction, places: np.ndarray) -> list[str | None]:
    return [element(reaction.tokens[place]) for place in places]


def test_tokens_and_elements_by_hand():
    tokens = datasets.smiles_tokens("C[NH3+].[Br-].Clc1ccc%10[se]1>>BrC#N")
    assert " ".join(tokens) == "C [NH3+] . [Br-] . Cl c 1 c c c %10 [se] 1 >> Br C # N"
    found = " ".join(element(token) or "-" for token in tokens)
    assert found == "C N - Br - Cl C - C C C - Se - - Br C - N"


def test_each_atom_of_the_products_was_another_of_its_element():
    """Sixty reactions, twenty of each group; a mapping is one to one and keeps elements."""
    for found in BOTH:
        assert Counter(reaction.group for reaction in found) == dict.fromkeys(GROUPS, 20)
        assert len({(reaction.group, reaction.row) for reaction in found}) == 60
        for reaction in found:
            assert reaction.tokens == re.findall(PUBLISHED, reaction.smiles)
            before, after = (names(reaction, at) for at in (reaction.reactants, reaction.products))
            first = [origins[0] for origins in reaction.origins]
            assert len(first) == len(after) == len(set(first)), reaction.smiles
            assert [before[atom] for atom in first] == after
            assert set(reaction.changed) <= set(range(len(after)))
            assert reaction.correct.shape == (len(after), len(before))
            assert not np.any(reaction.correct & ~reaction.same_element), reaction.smiles
            for atom, origins in enumerate(reaction.origins):
                assert set(np.flatnonzero(reaction.correct[atom])) == set(origins)


def test_symmetry_by_hand():
    """Ortho and meta carbons of a phenyl ring come in pairs, the others alone."""
    first = BOTH[0][0]
    assert first.smiles == r"BrCc1ccccc1.C/C(=N\O)c1cccnc1>>C/C(=N\OCc1ccccc1)c1cccnc1"
    assert first.origins[5:11] == ((2,), (7, 3), (6, 4), (5,), (4, 6), (3, 7))
    assert first.changed == (3, 4)  # the oxygen, and the carbon that left bromine for it
    assert all(len(one) == 1 for one in first.origins[:6] + first.origins[11:])


def test_rewritten_reactions_are_the_same_in_another_order():
    for plain, other in zip(*BOTH, strict=True):
        assert (plain.group, plain.row) == (other.group, other.row)
        assert plain.smiles != other.smiles
        for side in ("reactants", "products"):
            kinds = [Counter(names(r, getattr(r, side))) for r in (plain, other)]
            assert kinds[0] == kinds[1], plain.smiles


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"^smiles: got '', expected a string such as"):
        datasets.smiles_tokens("")
    with pytest.raises(ValueError, match=r"^smiles: got 'CCO', expected reactants, one '>>' and"):
        datasets.Reaction("CCO")
