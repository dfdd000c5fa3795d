"""Chapter 12's page tables: sequences that share pages, and one that writes."""

import numpy as np

from attnbook.course.checks.call import call_pair
from attnbook.course.checks.verdict import Function, Wrong, check, expect


@check
def page_written(function: Function) -> str:
    """function(pages, tables, lengths, sequence, key): pages and tables after one more key."""
    rng = np.random.default_rng(5)
    shared, parted = [[5, 2, -1], [5, 2, -1], [7, 1, -1]], [[5, 2, -1], [5, 0, -1], [7, 1, -1]]
    for rows, lengths, who, name in (
        (shared, [5, 5, 4], 2, "a page of its own"),
        (shared, [5, 5, 4], 1, "a page that two sequences share"),
        (shared, [6, 6, 4], 0, "a last page that is full"),
        (parted, [5, 5, 4], 0, "a page that is no longer shared"),
    ):
        pages, key = rng.normal(size=(9, 3, 2)), rng.normal(size=2)
        tables, where, place = np.asarray(rows), f"for {name}", lengths[who]
        slot, free = place // 3, sorted(set(range(9)) - set(np.ravel(rows)))
        new, is_full, is_shared = free[0], place % 3 == 0, name.endswith("share")
        right = _table(tables, who, {slot: new} if is_full or is_shared else {})
        got, table = call_pair(function, pages, tables, np.asarray(lengths), who, key)
        if got.shape == tables.shape and table.shape == pages.shape:
            raise Wrong(f"{where} the tables come first: return the pages first.")
        kept = "The last page is full: take a new one."
        moved = np.where(tables == tables[who, slot], new, tables)
        causes = [(tables, kept if is_full else "Another sequence reads that page too: copy it.")]
        if is_shared:
            own = "The other sequence keeps the old page: change the writer's table alone."
            more = "The new page takes the old one's place in the table."
            causes += [(moved, own), (_table(tables, 0, {slot: new}), own),
                       (_table(tables, who, {slot + 1: new}), more),
                       (_table(tables, who, {0: new, 1: free[1]}),
                        "Full pages are never written again: they stay shared.")]  # fmt: skip
        copied = "A full page is never written again: leave it, and take a new one."
        alone = "No other sequence has that page: write into it, without a copy."
        causes.append((_table(tables, who, {slot - is_full: new}), copied if is_full else alone))
        causes += [(_table(right, who, {slot: other}), "Take the lowest page that no table names.")
                   for other in free[1:] if is_full or is_shared]  # fmt: skip
        expect(table, right, f"{where}, in the tables,", causes)
        if got.shape != pages.shape:
            raise Wrong(f"{where} you give pages of shape {got.shape}, expected {pages.shape}.")
        for one, length in enumerate(lengths):
            before = pages[tables[one]].reshape(9, 2)[:length]
            seen = got[right[one]].reshape(9, 2)
            if one != who:
                changed = [(seen[:length], "Another sequence reads something else now.")]
                expect(seen[:length], before, f"{where}, in what sequence {one} reads,", changed)
                continue
            garbage = np.vstack([pages[right[one]].reshape(9, 2)[:place], key])
            expect(seen[: place + 1], np.vstack([before, key]), f"{where}, for the writer,", [
                (garbage, "The new page lacks what the old one held: copy it first."),
                (np.vstack([before, seen[place]]), "The key is not in its place: lengths[i] % 3."),
                (np.vstack([before[:-1], key, seen[place]]), "That is one place too early."),
            ])  # fmt: skip
    return "a fork costs one page at most, and that only when somebody writes."


def _table(tables: np.ndarray, sequence: int, changes: dict[int, int]) -> np.ndarray:
    """The tables, with these entries of one sequence changed."""
    changed = tables.copy()
    for slot, page in changes.items():
        changed[sequence, slot] = page
    return changed
