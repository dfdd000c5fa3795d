"""Chemical reactions of which is known which atom became which, as SMILES."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Int

Array = np.ndarray

TOKEN = re.compile(r"\[[^]]+\]|Br|Cl|>>|%\d\d|.")  # an atom in brackets is one token
ATOM = re.compile(r"\[\d*([A-Z][a-z]?|[a-z][a-z]?)|([A-Z][a-z]?|[bcnops])$")
GROUPS = ("typical", "patent", "complex")


def smiles_tokens(smiles: str) -> list[str]:
    """The tokens of a SMILES string: atoms, bonds, brackets, ring numbers and the arrow ">>".

    An atom in square brackets is one token, with its charge and hydrogens; so are Br and Cl.

    Raises:
        ValueError: something else than a string that is not empty.
    """
    if not isinstance(smiles, str) or not smiles:
        raise ValueError(f"smiles: got {smiles!r}, expected a string such as 'CC(=O)O.CCO>>CCO'")
    return TOKEN.findall(smiles)


def element(token: str) -> str | None:
    """The chemical element of a token of SMILES, "C" for "c" and "[CH2]"; None if it is no atom."""
    found = ATOM.match(token)
    return (found[1] or found[2]).capitalize() if found else None


@dataclass(frozen=True)
class Reaction:
    """A reaction with its atom mapping. Atoms are counted from 0 in the order of the SMILES.

    Args:
        smiles: reactants, ">>", products; molecules stand between full stops. Hydrogen atoms that
            belong to another atom are not written, as everywhere in SMILES.
        origins: for each atom of the products the atoms of the reactants that it may have been;
            the first is the published one, the others are those that symmetry exchanges with it.
            Empty where no mapping is known.
        changed: the atoms of the products whose bonds are others than in the reactants.
        group: "typical", "patent" or "complex", as the source sorts them; "" for another source.
        row: of the source's table of that group, from 0.

    Raises:
        ValueError: `smiles` is no text with one ">>".
    """

    smiles: str
    origins: tuple[tuple[int, ...], ...] = ()
    changed: tuple[int, ...] = ()
    group: Literal["typical", "patent", "complex", ""] = ""
    row: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.smiles, str) or self.smiles.count(">>") != 1:
            expected = "reactants, one '>>' and products, such as 'CC=O.[H][H]>>CCO'"
            raise ValueError(f"smiles: got {self.smiles!r}, expected {expected}")

    @cached_property
    def tokens(self) -> list[str]:
        """The tokens of the SMILES."""
        return smiles_tokens(self.smiles)

    @cached_property
    def reactants(self) -> Int[Array, " reactants"]:
        """The places of the reactants' atoms among the tokens."""
        return self._atoms(0, self.tokens.index(">>"))

    @cached_property
    def products(self) -> Int[Array, " products"]:
        """The places of the products' atoms among the tokens."""
        return self._atoms(self.tokens.index(">>"), len(self.tokens))

    @cached_property
    def same_element(self) -> Bool[Array, "products reactants"]:
        """Whether an atom of the products and one of the reactants are the same element."""
        elements = np.array([element(token) or "" for token in self.tokens])
        return elements[self.products][:, None] == elements[self.reactants]

    @cached_property
    def correct(self) -> Bool[Array, "products reactants"]:
        """Whether an atom of the products may have been that of the reactants."""
        correct = np.zeros((len(self.products), len(self.reactants)), dtype=bool)
        for atom, origins in enumerate(self.origins):
            correct[atom, list(origins)] = True
        return correct

    def _atoms(self, start: int, stop: int) -> Int[Array, " atoms"]:
        places = range(start, stop)
        return np.array([i for i in places if element(self.tokens[i])], dtype=np.int64)


def reactions(*, rewritten: bool = False) -> list[Reaction]:
    """Sixty reactions whose atoms chemists mapped by hand, twenty of each of three groups.

    "typical" are reactions as textbooks have them, "patent" come from patents, "complex" rearrange
    many bonds. They are drawn at random from the 610 that can be read. The molecules of a side are
    sorted, and each is written in RDKit's canonical way, which knows nothing of the mapping.
    By-products of a single atom are left out. Two atoms count as exchanged by symmetry if RDKit
    gives them the same rank; the two oxygens of an acid, one with a hydrogen, are different.

    Args:
        rewritten: the same reactions with the molecules of a side in random order and each
            written from a random atom, so that equal parts no longer look alike.

    Raises:
        ValueError: `rewritten` is neither True nor False.

    Source: the test reactions of Jaworski et al., Automatic mapping of atoms across both simple
        and complex chemical reactions, Nature Communications 10, 1434 (2019), licensed under
        CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/), as the source distribution of
        synrbl 1.0.6 (MIT) carries them; changed by tools/make_reactions.py, as said above.
    """
    path = files("attnbook").joinpath("datasets", "reactions.json")
    return read_reactions(path.read_text(encoding="utf-8"), rewritten=rewritten)


def read_reactions(text: str, *, rewritten: bool = False) -> list[Reaction]:
    """The reactions of a text that tools/make_reactions.py wrote."""
    found = []
    for entry in json.loads(text):
        written: dict[str, Any] = entry["rewritten"] if rewritten else entry
        origins = tuple(map(tuple, written["origins"]))
        changed = tuple(written["changed"])
        found.append(Reaction(written["smiles"], origins, changed, entry["group"], entry["row"]))
    return found
