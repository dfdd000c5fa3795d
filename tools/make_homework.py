"""Make a class's homework: a notebook for students; for the lecturer the key and the grader's file.

python tools/make_homework.py --seed 483920            every set in homework/
python tools/make_homework.py --seed 483920 hw1 hw3    these
python tools/make_homework.py --seed 483920 --held-out FOLDER    with exercises of your own
python tools/make_homework.py --seed 507613 --replace            over the keys of another seed

The seed is the class's secret: the numbers of the held-out exercises come from it. Students get
_build/homework/students/hw1.ipynb; all of _build/homework/lecturer stays with the lecturer.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from homework_cells import Part, Writer
from homework_keys import fingerprint, refuse_to_lose

from attnbook_course.checks.exercises import (
    EXPLANATION,
    Exercise,
    exercises,
    exercises_in,
    names,
)
from attnbook_course.checks.grading.homework import BadHomework, held_out_module, read_homework
from attnbook_course.checks.repair import define
from attnbook_course.checks.verdict import Verdict
from attnbook_course.weaving.notebook import text_of

ROOT = Path(__file__).resolve().parent.parent
PLAN = ("title", "chapters", "seconds", "minutes", "explanations")


class Maker(Writer):
    """Makes the homework of a class from the files of a repository."""

    def __init__(self, root: Path, seed: int, own: Path | None = None) -> None:
        super().__init__(root)
        self.seed = seed
        self.own = own  # a lecturer's folder of held-out exercises; a chapter's files there count

    def plan(self, name: str) -> dict[str, Any]:
        """What homework/NAME.toml says.

        Raises:
            BadHomework: it is missing, or not as expected.
        """
        path = self.root / "homework" / f"{name}.toml"
        if not path.is_file():
            known = ", ".join(sets(self.root))
            raise BadHomework(f"homework/{name}.toml: there is no such file; there are {known}")
        try:
            plan = tomllib.loads(path.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise BadHomework(f"homework/{name}.toml: {error}") from None
        if missing := [key for key in PLAN if key not in plan]:
            raise BadHomework(f"homework/{name}.toml: {', '.join(missing)}: expected a line of it")
        return plan

    def parts(self, name: str, plan: dict[str, Any]) -> list[Part]:
        """The exercises of a homework, published ones first, in the plan's order."""
        published: dict[str, tuple[Exercise, str, str]] = {}
        held_out: dict[str, tuple[Exercise, str, str]] = {}
        for number in plan["chapters"]:
            chapter = self.chapter(number)
            text = chapter.read_text("utf-8")
            published |= {e.label: (e, "", text) for e in exercises(chapter)}
            held_out |= {e.label: (e, f"ch{number}", t) for e, t in self.held_out(number)}
        parts = []
        for table, known in (("points", published), ("held_out", held_out)):
            for label, points in plan.get(table, {}).items():
                if label not in known:
                    words = f"no exercise {label!r} in [{table}]; there are {', '.join(known)}"
                    raise BadHomework(f"homework/{name}.toml: {words}")
                exercise, chapter_name, text = known[label]
                note = next(body for own, body in EXPLANATION.findall(text) if own == label)
                parts.append(Part(exercise, points, chapter_name, note))
        functions = [part.function for part in parts if part.function]
        if twice := {one for one in functions if functions.count(one) > 1}:
            words = f"two exercises ask for a function {', '.join(sorted(twice))}"
            raise BadHomework(f"homework/{name}.toml: {words}")
        return parts

    def held_out(self, number: str) -> Iterator[tuple[Exercise, str]]:
        """A chapter's held-out exercises with this class's numbers, each with its file's text."""
        path = self.held_out_file(f"ch{number}.md")
        module = held_out_module(self.held_out_file(f"ch{number}.py"))
        text = path.read_text("utf-8")
        for key, value in module.numbers(self.seed).items():
            text = text.replace("{{ " + key + " }}", str(value))
        if left := re.search(r"\{\{.*?\}\}", text):
            words = f"numbers() gives no {left[0]}"
            raise BadHomework(f"{path}: {words}")
        for exercise in exercises_in(text, self.chapter(number)):
            yield exercise, text

    def held_out_file(self, name: str) -> Path:
        """A chapter's held-out exercises or checks: the lecturer's own where there are some."""
        folder = self.root / "homework" / "held_out"
        if self.own is not None and (self.own / Path(name).with_suffix(".md")).is_file():
            folder = self.own
        if not (folder / name).is_file():
            raise BadHomework(f"{folder / name}: there is no such file")
        return folder / name

    def keep(self, name: str, out: Path) -> None:
        """Refuse, with a BadHomework, to write over the key of another seed or other questions."""
        key = out / "lecturer" / name / "homework.json"
        if key.is_file():
            refuse_to_lose(key, self.seed, questions(name, self.parts(name, self.plan(name))))

    def make(self, name: str, out: Path) -> str:
        """Write a homework's files; what was made, in one line.

        Raises:
            BadHomework: something is missing, or a solution does not score.
        """
        plan = self.plan(name)
        parts = self.parts(name, plan)
        folder = out / "lecturer" / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "held_out").mkdir(parents=True)
        (out / "students").mkdir(exist_ok=True)
        for chapter in sorted({part.held_out for part in parts} - {""}):
            source = self.held_out_file(f"{chapter}.py")
            shutil.copyfile(source, folder / "held_out" / source.name)
        manifest = self.manifest(name, plan, parts)
        _write(folder / "homework.json", json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
        homework = read_homework(folder / "homework.json")
        for part in parts:
            if part.function:
                verdict = scored(part, homework.checks[part.exercise.label])
                if verdict.status != "right":
                    words = f"the solution of {part.exercise.label} is not right: {verdict}"
                    raise BadHomework(f"homework/{name}.toml: {words}")
        for key, place in ((False, out / "students"), (True, folder)):
            notebook = self.notebook(name, plan, parts, manifest["questions"], key=key)
            _write(place / f"{name}.ipynb", text_of(notebook))
        return f"{name}: {len(parts)} exercises, {homework.points:g} points"

    def manifest(self, name: str, plan: dict[str, Any], parts: Sequence[Part]) -> dict[str, Any]:
        """What homework.json says: see attnbook_course.checks.grading.homework."""
        tasks = []
        for part in parts:
            label, title = part.exercise.label, part.exercise.title
            own = {"label": label, "title": title, "points": part.points, "kind": part.kind}
            own |= {"function": part.function, "check": part.held_out or check_name(part.exercise)}
            answer = "" if part.function else self.prose(part, part.note.strip())
            tasks.append(own | {"answer": answer, "places": self.places(part)})
        return {
            "name": name,
            "title": plan["title"],
            "seed": self.seed,
            "questions": questions(name, parts),
            "seconds": plan["seconds"],
            "minutes": plan["minutes"],
            "completion": plan["explanations"] == "completion",
            "exercises": tasks,
        }


def questions(name: str, parts: Sequence[Part]) -> str:
    """The fingerprint of a set: its labels, and the texts of those that differ between classes."""
    held_out = [part.exercise.text + part.exercise.stub for part in parts if part.held_out]
    return fingerprint(name, [*(part.exercise.label for part in parts), *held_out])


def check_name(exercise: Exercise) -> str:
    """The check of a published exercise, "ch01.epanechnikov"; empty for an explanation."""
    return exercise.check_line.split("(")[0].removeprefix("checks.") if exercise.stub else ""


def scored(part: Part, check: Any) -> Verdict:
    """What the check says to the solution."""
    with redirect_stdout(StringIO()):  # where a build is the book's own, it would say so
        solution = define(part.exercise.solution, part.function, names(part.exercise.chapter))
        verdict: Verdict = check(solution)
    return verdict


def sets(root: Path) -> list[str]:
    """The names of all homework of a repository, hw10 after hw9."""
    found = (path.stem for path in (root / "homework").glob("*.toml"))
    return sorted(found, key=lambda name: (len(name), name))


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8", newline="\n")


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Make a class's homework.")
    parser.add_argument("names", nargs="*", help="sets, such as hw1; all by default")
    parser.add_argument("--seed", required=True, help="the class's secret, a whole number")
    parser.add_argument("--out", type=Path, default=None, help="_build/homework by default")
    parser.add_argument("--held-out", type=Path, help="a folder with chNN.md and chNN.py")
    parser.add_argument("--replace", action="store_true", help="also the keys of another seed")
    options = parser.parse_args(arguments)
    out = options.out or root / "_build" / "homework"
    if not re.fullmatch(r"\d{1,18}", options.seed):
        words = f"got {options.seed!r}, expected a whole number, as in SEED=483920"
        print(f"seed: {words}", file=sys.stderr)
        return 2
    own = options.held_out and options.held_out.expanduser()
    if own is not None and not own.is_dir():
        print(f"held-out: got {own}, expected a folder with chNN.md and chNN.py", file=sys.stderr)
        return 2
    try:
        maker = Maker(root, int(options.seed), own)
        names = options.names or sets(root)
        for name in [] if options.replace else names:  # all, before the first is written
            maker.keep(name, out)
        for name in names:
            print(maker.make(name, out))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"For students: {out / 'students'}. For you alone: {out / 'lecturer'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
