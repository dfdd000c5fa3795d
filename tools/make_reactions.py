"""Draw the reactions of datasets.reactions from the published ones, and write them differently.

python tools/make_reactions.py FOLDER                  the sixty, into the package
python tools/make_reactions.py FOLDER --all FILE       all that can be read, into FILE
python tools/make_reactions.py … --seed 1              rewritten in another random order

FOLDER holds typical.csv, patent.csv and complex.csv with the columns reaction and mapped_reaction:
the test reactions of Jaworski et al. (Nature Communications 10, 1434, 2019, CC BY 4.0), as the
source distribution of synrbl 1.0.6 has them in Data/Raw_data/Jaworski. Needs RDKit.

A mapped reaction is kept if its molecules are those of the unmapped one. Its molecules are written
as RDKit writes them, without numbers and sorted, so that the order of atoms says nothing about the
mapping. By-products that stand in the mapped reaction alone, and those of one atom, are left out:
the source writes lost groups in pieces.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

from rdkit import Chem, RDLogger

TARGET = Path(__file__).parents[1] / "src/attnbook/datasets/reactions.json"
GROUPS, EACH, SEED = ("typical", "patent", "complex"), 20, 0
BESIDE_METAL = re.compile(r"\[CH?\d?\]")  # new versions of RDKit spell these hydrogens out


def molecule(text: str) -> Any:
    """A molecule, its hydrogens filled in where the source leaves them out."""
    read = Chem.RemoveHs(Chem.MolFromSmiles(text))
    for atom in read.GetAtoms():
        if not atom.GetIsAromatic() or atom.GetSymbol() == "C":
            atom.SetNoImplicit(False)
            atom.SetNumExplicitHs(0)
            atom.SetNumRadicalElectrons(0)
    Chem.SanitizeMol(read)
    return read


def written(read: Any, *, canonical: bool = True) -> tuple[str, list[int]]:
    """Its SMILES, and for each atom of the text its place in the molecule."""
    text = Chem.MolToSmiles(read, canonical=canonical)
    order = list(read.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    plain = BESIDE_METAL.sub("C", text)
    if Chem.MolToSmiles(Chem.MolFromSmiles(plain)) == Chem.MolToSmiles(Chem.MolFromSmiles(text)):
        text = plain
    return text, order


def numbered(side: str) -> list[tuple[str, list[int]]]:
    """The molecules of one side, sorted, each with the numbers of its atoms."""
    found = []
    for part in side.split("."):
        read = molecule(part)
        numbers = [atom.GetAtomMapNum() for atom in read.GetAtoms()]
        for atom in read.GetAtoms():
            atom.SetAtomMapNum(0)
        text, order = written(read)
        found.append((text, [numbers[k] for k in order]))
    return sorted(found)


def names(texts: list[str]) -> Counter[str]:
    """Molecules of two atoms or more, however they are written."""
    read = [Chem.MolFromSmiles(text) for text in texts]
    return Counter(Chem.MolToSmiles(one) for one in read if one.GetNumHeavyAtoms() > 1)


def neighbours(whole: Any, numbers: list[int]) -> dict[int, set[tuple[int, str]]]:
    """For each number, the numbers and kinds of its bonds."""
    kind: dict[int, set[tuple[int, str]]] = {n: set() for n in numbers}
    for bond in whole.GetBonds():
        a, b = numbers[bond.GetBeginAtomIdx()], numbers[bond.GetEndAtomIdx()]
        for one, other in ((a, b), (b, a)):
            kind[one].add((other, "" if bond.GetIsAromatic() else str(bond.GetBondType())))
    return kind


def reaction(plain: str, mapped: str) -> dict[str, Any] | None:
    """SMILES, the atoms that each product atom may come from, and the atoms whose bonds change."""
    (before, after), (left, right) = plain.split(">>"), map(numbered, mapped.split(">>"))
    missing = names(before.split(".")) - names([text for text, _ in left])
    if missing or names(after.split(".")) - names([text for text, _ in right]):
        return None
    right = [
        part for part in right if names([part[0]]) and names([part[0]]) <= names(after.split("."))
    ]
    texts = [".".join(text for text, _ in side) for side in (left, right)]
    wholes = [Chem.MolFromSmiles(text) for text in texts]
    was, now = ([n for _, numbers in side for n in numbers] for side in (left, right))
    known = [n for n in was if n]
    if not now or 0 in now or len(set(now)) < len(now) or len(set(known)) < len(known):
        return None
    if not set(now) <= set(known):
        return None
    elements = [[atom.GetSymbol() for atom in whole.GetAtoms()] for whole in wholes]
    origin = [was.index(n) for n in now]
    if [elements[0][k] for k in origin] != elements[1]:
        return None
    ranks = [list(Chem.CanonicalRankAtoms(whole, breakTies=False)) for whole in wholes]
    origins = []
    for rank, true in zip(ranks[1], origin, strict=True):
        like = {ranks[0][k] for k, r in zip(origin, ranks[1], strict=True) if r == rank}
        others = [k for k, r in enumerate(ranks[0]) if r in like and k != true]
        origins.append([true, *(k for k in others if elements[0][k] == elements[0][true])])
    old, new = neighbours(wholes[0], was), neighbours(wholes[1], now)
    changed = [k for k, n in enumerate(now) if old[n] != new[n]]
    return {"smiles": ">>".join(texts), "origins": origins, "changed": changed}


def rewritten(found: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The same reaction: molecules in random order, each from a random atom."""
    texts, orders = [], []
    for side in found["smiles"].split(">>"):
        parts, at = [], 0
        for text in side.split("."):
            read = Chem.MolFromSmiles(text)
            shuffled = list(range(read.GetNumAtoms()))
            rng.shuffle(shuffled)
            new, order = written(Chem.RenumberAtoms(read, shuffled), canonical=False)
            parts.append((new, [at + shuffled[k] for k in order]))
            at += len(shuffled)
        rng.shuffle(parts)
        texts.append(".".join(text for text, _ in parts))
        orders.append([k for _, order in parts for k in order])
    place = [{old: new for new, old in enumerate(order)} for order in orders]
    return {
        "smiles": ">>".join(texts),
        "origins": [[place[0][k] for k in found["origins"][old]] for old in orders[1]],
        "changed": sorted(place[1][k] for k in found["changed"]),
    }


def readable(path: Path) -> list[dict[str, Any]]:
    """Every reaction of a file that can be read, with its row."""
    found = []
    with path.open(encoding="utf-8", newline="") as file:
        for row, one in enumerate(csv.DictReader(file)):
            try:
                made = reaction(one["reaction"], one["mapped_reaction"])
            except (ValueError, LookupError, TypeError, RuntimeError):  # not as RDKit reads
                made = None
            if made:
                found.append({"group": path.stem, "row": row, **made})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", type=Path, default=None)
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")
    kept = []
    for group in GROUPS:
        found = readable(asked.folder / f"{group}.csv")
        print(f"{group}: {len(found)} can be read")
        drawn = sorted(random.Random(SEED).sample(range(len(found)), EACH))
        kept += found if asked.all else [found[k] for k in drawn]
    rng = random.Random(asked.seed)
    lines = [json.dumps({**one, "rewritten": rewritten(one, rng)}) for one in kept]
    (asked.all or TARGET).write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
